"""What is given for a model and is no config.json, and what a file is called."""

import json
import os
from pathlib import Path

import pytest

from napkin.specs import models
from tests.running import napkin

BESIDE = "give the config.json beside it"
GGUF = "a GGUF file, whose shape napkin does not read; give the config.json it was made from"
LLAMA = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "vocab_size": 100,
}
OTHERS: list[tuple[str, bytes, str]] = [
    ("a/b.gguf", b"GGUF\x03\x00", GGUF),
    ("config.json", b"GGUF\x03\x00", GGUF),
    ("config.json", b"\xef\xbb\xbf\n<!DOCTYPE html>", "a web page that was saved; get the config.json itself"),
    ("a/b.safetensors", b"\x08\x00", f"holds weights; {BESIDE}"),
    ("pytorch_model.bin", b"PK\x03\x04", f"holds weights; {BESIDE}"),
    ("model.safetensors.index.json", b" " * 2_000_000, f"an index of weight files; {BESIDE}"),
    ("index.json", b'{"weight_map": {}}', f"an index of weight files; {BESIDE}"),
    (
        "adapter_config.json",
        b'{"peft_type": "LORA", "base_model_name_or_path": "a/b"}',
        "the settings of an adapter (PEFT); give the config.json of its base model, 'a/b'",
    ),
    (
        "config.json",
        b'{"peft_type": "LORA", "base_model_name_or_path": null}',
        "the settings of an adapter (PEFT); give the config.json of its base model",
    ),
    (
        "params.json",
        b'{"dim": 4096, "n_layers": 32, "n_heads": 32, "vocab_size": -1}',
        "the params.json of Meta's own release; give the config.json of the same model for "
        "transformers, or a shape: llama:L=n_layers,d=dim,H=n_heads,...",
    ),
    ("tokenizer_config.json", b'{"tokenizer_class": "X"}', f"a tokenizer's file; {BESIDE}"),
    (
        "generation_config.json",
        b'{"eos_token_id": 2, "transformers_version": "5.24.0"}',
        f"the settings of generation; {BESIDE}",
    ),
    (
        "config.json",
        b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n",
        "a pointer of Git LFS; `git lfs pull` gets the file itself",
    ),
    ("config.json", b'{"error": "Entry not found"}', "an error's page that was saved; get the config.json again"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "content", "says"), OTHERS, ids=[f"{n} {s}" for n, _, s in OTHERS]
)
def test_another_file_is_called_what_it_is(
    name: str, content: bytes, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").mkdir()
    (tmp_path / name).write_bytes(content)
    ran = napkin(["models", name])
    assert (ran.code, ran.err) == (2, f"Error: {name}: {says}\n")


def test_a_path_that_exists_is_one_before_it_is_a_name_of_the_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a/b", "meta-llama/Meta-Llama-3-8B"):
        (tmp_path / name).mkdir(parents=True)
        ran = napkin(["models", name])
        assert ran.err == f"Error: {name}: is a folder without a config.json\n"
    (tmp_path / "a" / "file").write_text(json.dumps(LLAMA))
    assert models.find("a/file").name == "file"
    assert napkin(["models", "a/missing.gguf"]).err == "Error: a/missing.gguf: no such file\n"


def test_a_file_that_links_to_itself_is_an_error_of_one_line(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    os.symlink("config.json", file)
    for given in (tmp_path, file):
        ran = napkin(["models", str(given)])
        said = f"{file}: cannot be read: Too many levels of symbolic links"
        assert (ran.code, ran.err) == (2, f"Error: {said}\n")


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    os.mkfifo(file)
    assert napkin(["models", str(file)]).err == f"Error: {file}: is not a file\n"


def test_a_snapshot_of_the_hub_s_cache_has_the_model_s_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cached = tmp_path / "hub" / "models--some-org--a-model"
    snapshot = cached / "snapshots" / "0123abc"
    snapshot.mkdir(parents=True)
    (cached / "blobs").mkdir()
    (cached / "blobs" / "4567").write_text(json.dumps(LLAMA))
    (snapshot / "config.json").symlink_to("../../blobs/4567")
    for given in (snapshot, snapshot / "config.json"):
        assert models.find(str(given)).name == "some-org/a-model"
    monkeypatch.chdir(snapshot)
    for here in (".", "config.json", "./config.json"):
        assert models.find(here).name == "some-org/a-model"
    # A link of one's own is called as its owner called it.
    (tmp_path / "mine").symlink_to(snapshot)
    assert models.find(str(tmp_path / "mine")).name == "mine"


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        (
            "adapter_config.json",
            b'{"peft_type": "LORA", "base_model_name_or_path": "a/b"}',
            "/adapter_config.json: the settings of an adapter (PEFT); "
            "give the config.json of its base model, 'a/b'",
        ),
        (
            "params.json",
            b'{"dim": 4096, "n_layers": 32, "n_heads": 32}',
            "/params.json: the params.json of Meta's own release; give the config.json of the same "
            "model for transformers, or a shape: llama:L=n_layers,d=dim,H=n_heads,...",
        ),
        (
            "Q4.GGUF",
            b"",
            ": a folder of GGUF files; give the config.json that they were made from",
        ),
        ("notes.txt", b"", ": is a folder without a config.json"),
    ],
    ids=["an adapter", "Meta's", "GGUF", "none"],
)
def test_a_folder_without_a_config_is_called_what_it_is(
    name: str, content: bytes, says: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    ran = napkin(["models", str(tmp_path)])
    assert (ran.code, ran.err) == (2, f"Error: {tmp_path}{says}\n")


def test_only_the_suffix_of_json_is_no_part_of_a_file_s_name(tmp_path: Path) -> None:
    for name, called in (("Llama-3.1-8B", "Llama-3.1-8B"), ("v0.1.json", "v0.1")):
        file = tmp_path / name
        file.write_text(json.dumps(LLAMA))
        assert models.find(str(file)).name == called

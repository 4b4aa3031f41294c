"""Parameters and FLOP of models, against what others counted."""

import json
from pathlib import Path
from typing import Any

import pytest

from napkin.accounting.flop_per_token import of_model
from napkin.accounting.parameters import parameters
from napkin.specs import models
from napkin.specs.conventions import CONVENTIONS
from napkin.specs.folders import model_names
from napkin.specs.model import Model
from tests.running import DATA, answer, answers, data, napkin

GOLDEN = {each["id"]: each for each in data("golden_models.yaml")}
CONFIGS = DATA / "configs"


def golden(kind: str, *, has: str) -> list[dict[str, Any]]:
    return [
        each
        for name, each in GOLDEN.items()
        if name.startswith(f"{kind}.") and has in each["expected"]
    ]


def config(name: str) -> Model:
    """A model as its config.json on disk says."""
    found = models.find(str(CONFIGS / f"{name}.json"))
    assert isinstance(found, Model)
    return found


def ids(cases: list[dict[str, Any]]) -> list[str]:
    return [case["id"] for case in cases]


PARAMS = golden("params", has="matmul_per_token")


@pytest.mark.parametrize("case", PARAMS, ids=ids(PARAMS))
def test_parameters_are_those_that_were_counted(case: dict[str, Any]) -> None:
    parts = parameters(config(case["id"].removeprefix("params.")))
    expected = case["expected"]
    assert (parts.N.value, parts.N_act.value, parts.N_mm.value) == (
        expected["total"],
        expected["active"],
        expected["matmul_per_token"],
    )
    assert sum(parts.parts.values()) == expected["total"]


FORWARD = golden("flops", has="forward_full_attention")


@pytest.mark.parametrize("case", FORWARD, ids=ids(FORWARD))
def test_flop_of_a_sequence_are_those_that_were_counted(case: dict[str, Any]) -> None:
    T, expected = case["inputs"]["T"], case["expected"]
    file = CONFIGS / f"{case['inputs']['model']}.json"
    result = answer(["flops", "--model", str(file), "--seq-len", str(T)])["result"]
    assert result["forward_per_token"] * T == expected["forward_full_attention"]
    assert result["backward_per_token"] == 2 * result["forward_per_token"]
    training = result["training_per_token"]
    assert training["exact_full"] * T == expected["train_full_attention"]
    assert training["exact_causal"] * T == expected["train_causal_exact"]
    assert training["megatron"] * T == expected["train_megatron"]


PER_TOKEN = golden("flops_per_token", has="palm")


@pytest.mark.parametrize("case", PER_TOKEN, ids=ids(PER_TOKEN))
def test_each_convention_is_the_sum_that_it_names(case: dict[str, Any]) -> None:
    found = of_model(config(case["inputs"]["model"]), case["inputs"]["T"], "").flop
    renamed = {"six_n": "sixN_active", "six_n_non_embedding": "sixN_non_embedding"}
    assert {name: f.value for name, f in found.items()} == {
        name: case["expected"][renamed.get(name, name)] for name in CONVENTIONS
    }


STACKS = [each for name, each in GOLDEN.items() if name.startswith("flops.cruncher.")]


@pytest.mark.parametrize("case", STACKS, ids=ids(STACKS))
def test_the_lecture_s_stack_needs_no_first_input_gradient(case: dict[str, Any]) -> None:
    B, d, L = (case["inputs"][letter] for letter in "BDL")
    result = answer(f"flops --model linear:L={L},d={d}")["result"]
    expected = case["expected"]
    assert result["params"] == expected["N"]
    assert result["forward_per_token"] * B == expected["forward"]
    assert result["backward_per_token"] * B == expected["backward"]
    assert result["training_per_token"]["six_n"] * B == expected["lecture_6BN"]


def test_every_config_at_hand_is_shipped_and_counts_the_same() -> None:
    names = {path.stem for path in CONFIGS.glob("*.json")} - {"deepseek-v3-small"}
    assert names <= set(model_names())
    for name in names:
        shipped, file = models.find(name), config(name)
        assert parameters(shipped).parts == parameters(file).parts


# What their makers publish, or the sizes of their checkpoints say.
PUBLISHED = {
    "deepseek-v2": 235_741_434_880,
    "gpt-neox-20b": 20_554_567_680,
    "gpt-oss-120b": 116_829_156_672,
    "gpt2-large": 774_030_080,
    "llama-65b": 65_285_660_672,
    "mixtral-8x22b": 140_630_071_296,
    "gemma-2-27b": 27_227_128_320,
    "pythia-70m": 70_426_624,
    "pythia-160m": 162_322_944,
    "pythia-410m": 405_334_016,
    "pythia-1b": 1_011_781_632,
    "pythia-1.4b": 1_414_647_808,
    "pythia-12b": 11_846_072_320,
    "qwen2.5-0.5b": 494_032_768,
    "qwen2.5-72b": 72_706_203_648,
    "qwen3-235b-a22b": 235_093_634_560,
    "qwen3-32b": 32_762_123_264,
    "smollm2-135m": 134_515_008,
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_shipped_model_has_the_parameters_that_are_published(name: str) -> None:
    assert answer(f"models {name}")["result"]["params"] == PUBLISHED[name]


def test_the_list_has_every_model_and_each_is_found_by_its_hub_names() -> None:
    listed = answers("models")
    assert [each["inputs"]["model"] for each in listed] == model_names()
    assert len(listed) >= 30
    for name in model_names():
        found = models.find(name)
        assert isinstance(found, Model)
        for hub_name in models.hub_names(found):
            assert repr(models.find(hub_name.upper())) == repr(found)


def test_me_06_a_gated_mlp_has_three_matrices(tmp_path: Path) -> None:
    file = tmp_path / "q72.json"
    fields = {
        "architectures": ["Qwen2ForCausalLM"],
        "hidden_size": 8192,
        "num_hidden_layers": 80,
        "intermediate_size": 24576,
        "vocab_size": 152064,
        "num_attention_heads": 64,
        "num_key_value_heads": 64,
        "tie_word_embeddings": False,
        "hidden_act": "silu",
    }
    file.write_text(json.dumps(fields))
    assert answer(["models", str(file)])["result"]["params"] == 72_287_920_128
    found = answer(["train-time", "--model", str(file), "--tokens", "1T", "--gpus", "512"])
    states = next(step for step in found["derivation"] if step["symbol"] == "S")
    assert states["value"] == 1_156_606_722_048
    fields["intermediate_size"] = 28672
    file.write_text(json.dumps(fields))
    parts = answer(["models", str(file)])["result"]["parts"]
    assert parts["MLP"] == 80 * 3 * 8192 * 28672


def test_a_model_is_found_in_its_folder_and_in_the_hub_s_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (CONFIGS / "qwen3-0.6b.json").read_text()
    folder = tmp_path / "my-model"
    folder.mkdir()
    (folder / "config.json").write_text(text)
    assert answer(["models", str(folder)])["inputs"] == {"model": "my-model"}
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    asked = ["models", "acme/rocket"]
    assert napkin(asked).err == (
        "Error: acme/rocket is not a shipped model and not in the Hugging Face cache; "
        "get its config.json (hf download acme/rocket config.json) and give that file\n"
    )
    cached = tmp_path / "hub" / "models--acme--rocket"
    other = text.replace('"num_hidden_layers": 28', '"num_hidden_layers": 2')
    assert other != text
    for revision, content in (("2newer", other), ("1main", text)):
        (cached / "snapshots" / revision).mkdir(parents=True)
        (cached / "snapshots" / revision / "config.json").write_text(content)
    (cached / "refs").mkdir()
    (cached / "refs" / "main").write_text("1main")
    assert answer(asked)["result"]["params"] == 596_049_920


def test_names_of_the_hub_in_a_user_s_file_mean_nothing(tmp_path: Path) -> None:
    fields = json.loads((CONFIGS / "qwen3-0.6b.json").read_text())
    for junk in (5, [5, {}], "abc"):
        (tmp_path / "config.json").write_text(json.dumps(fields | {"hub_names": junk}))
        assert not any("hub" in note for note in answer(["models", str(tmp_path)])["notes"])


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ("~nobodyx/foo", "no model is called '~nobodyx/foo'; `napkin models` lists all"),
        ("", "is empty; write a name that `napkin models` lists, or a config.json"),
        ("x" * 300, "no model is called 'xxx"),
        ("./nofile", "no model is called './nofile'"),
        ("a:b/config.json", "a:b/config.json: no such file"),
    ],
)
def test_what_is_no_model_is_said_in_one_line(wanted: str, says: str) -> None:
    ran = napkin(["models", wanted])
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert ran.err.startswith(f"Error: {says}")


def test_a_folder_here_is_named_for_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "config.json").write_text((CONFIGS / "gpt2.json").read_text())
    monkeypatch.chdir(tmp_path / "mine")
    assert answer("models .")["inputs"] == {"model": "mine"}
    assert answer("models config.json")["inputs"] == {"model": "mine"}


def test_the_list_fits_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    widest = max(len(line) for line in napkin("models").out.splitlines())
    assert widest <= 80


def test_a_design_s_letters_are_all_heard_or_refused() -> None:
    for letter in ("kv=1", "hd=128", "w=64"):
        ran = napkin(f"models gpt2:L=2,d=64,H=4,ff=128,V=100,{letter}")
        assert ran.err.startswith(f"Error: gpt2: '{letter.split('=')[0]}' is none of its sizes")
    for kind in ("llama", "gemma", "olmo2"):
        ran = napkin(f"models {kind}:L=2,d=64,H=4,ff=128,V=100,w=16")
        known = "known are L d H kv hd ff V T tied"
        assert ran.err == f"Error: {kind}: 'w' is none of its sizes; {known}\n"
    for shape in (
        "mistral:",
        "phi3:",
        "qwen2:",
        "qwen3:",
        "mixtral:E=4,k=2,",
        "qwen3_moe:E=4,k=2,",
    ):
        design = models.find(f"{shape}L=2,d=64,H=4,ff=128,V=100,w=16")
        assert isinstance(design, Model)
        assert design.windows == ((16, 2),)
    for kind in ("gemma", "qwen3", "llama"):
        ran = napkin(f"models {kind}:L=2,d=100,H=3,ff=64,V=100")
        assert ran.err == f"Error: {kind}: d: 100 is no multiple of the 3 heads; say hd too\n"
    found = models.find("mistral:L=2,d=64,H=4,ff=96,V=100")
    assert isinstance(found, Model)
    assert found.windows == ()


def test_a_text_part_without_its_kind_is_that_of_its_model_or_refused(tmp_path: Path) -> None:
    part = {"hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34}
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"model_type": "gemma3", "text_config": part}))
    assert answer(["models", str(file)])["result"]["params"] == 3_880_263_168
    file.write_text(json.dumps({"model_type": "other", "text_config": part}))
    assert "architecture 'text_config of other' is not known" in napkin(["models", str(file)]).err


def test_a_word_that_stands_in_several_names_lists_those() -> None:
    listed = [each["inputs"]["model"] for each in answers("models llama-3")]
    assert listed == [name for name in model_names() if name.startswith(("llama-3-", "llama-3."))]
    assert "names with 'llama-3'" in napkin("models llama-3").out
    # In a question that computes, it stays a mistake.
    assert napkin("flops --model llama-3").code == 2

"""GPT-2 and its kin: LayerNorm, biases, an MLP of two matrices."""

from typing import Any

from napkin.specs.architectures.decoder import share
from napkin.specs.config import MOST_LAYERS, Config
from napkin.specs.model import Attention, Mlp, Model

NAMES = ("gpt2", "gpt_neox", "opt")
LONGEST = 2048


def gpt2(config: Config) -> Model:
    if config.flag("add_cross_attention", False):
        raise config.error("add_cross_attention", "cross attention is not counted")
    d_model = config.main_size("n_embd", "hidden_size", default=768)
    heads = config.main_size("n_head", "num_attention_heads", default=12)
    longest = config.size("n_positions", "max_position_embeddings", default=1024)
    return _model(
        config,
        50257,
        d_model=d_model,
        layers=config.main_size("n_layer", "num_hidden_layers", default=12, most=MOST_LAYERS),
        attention=_heads(config, d_model, heads),
        mlp=_mlp(
            config, config.size("n_inner", default=4 * d_model), "activation_function", "gelu_new"
        ),
        tied=config.flag("tie_word_embeddings", True),
        position_rows=longest,
        longest=longest,
    )


def gpt_neox(config: Config) -> Model:
    d_model = config.main_size("hidden_size", default=6144)
    heads = config.main_size("num_attention_heads", default=64)
    bias = config.flag("attention_bias", True)
    return _model(
        config,
        50432,
        d_model=d_model,
        layers=config.main_size("num_hidden_layers", default=44, most=MOST_LAYERS),
        attention=_heads(config, d_model, heads, bias),
        mlp=_mlp(
            config, config.main_size("intermediate_size", default=24576), "hidden_act", "gelu"
        ),
        tied=config.flag("tie_word_embeddings", False),
        longest=config.size("max_position_embeddings", default=LONGEST),
    )


def opt(config: Config) -> Model:
    d_model = config.main_size("hidden_size", default=768)
    heads = config.main_size("num_attention_heads", default=12)
    bias = config.flag("enable_bias", True)
    affine = config.flag("layer_norm_elementwise_affine", True)
    before = config.flag("do_layer_norm_before", True)
    longest = config.size("max_position_embeddings", default=LONGEST)
    return _model(
        config,
        50272,
        d_model=d_model,
        layers=config.main_size("num_hidden_layers", default=12, most=MOST_LAYERS),
        attention=_heads(config, d_model, heads, bias),
        mlp=_mlp(
            config, config.main_size("ffn_dim", default=3072), "activation_function", "relu", bias
        ),
        tied=config.flag("tie_word_embeddings", True),
        table_width=config.size("word_embed_proj_dim", default=d_model),
        position_rows=longest + 2,  # OPT's positions begin at 2
        norm_weights=2 if affine else 0,
        final_norm=before and not config.flag("_remove_final_layer_norm", False),
        longest=longest,
    )


def _mlp(config: Config, width: int, name: str, usual: str, bias: bool = True) -> Mlp:
    return Mlp(width, gated=False, bias=bias, activation=config.word(name, usual))


def _heads(config: Config, d_model: int, heads: int, bias: bool = True) -> Attention:
    width = share(config, d_model, heads)
    return Attention(heads, heads, width, width, qkv_bias=bias, out_bias=bias)


def _model(
    config: Config, vocab: int, *, d_model: int, norm_weights: int = 2, **more: Any
) -> Model:
    return Model(
        name="",
        architecture="",
        vocab=config.main_size("vocab_size", default=vocab),
        d_model=d_model,
        norm_weights=norm_weights,
        **more,
    )

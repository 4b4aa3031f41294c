"""GPT-2 and its kin: LayerNorm, biases, an MLP of two matrices."""

from typing import Any

from napkin.specs.architectures.decoder import known_activation, share
from napkin.specs.config import MOST_LAYERS, Config
from napkin.specs.model import Attention, Mlp, Model, Norm, Rotary
from napkin.specs.reader import reader

LONGEST = 2048


# scale_attn_…: the same matmuls, of other values.
@reader(
    """vocab_size n_embd hidden_size n_layer num_hidden_layers n_head num_attention_heads
    n_positions max_position_embeddings n_inner activation_function tie_word_embeddings
    reorder_and_upcast_attn""",
    ignores="""n_ctx scale_attn_weights scale_attn_by_inverse_layer_idx
    summary_type summary_use_proj summary_activation summary_proj_to_labels
    summary_first_dropout""",
    letters={"ff": "n_inner"},
    classes="GPT2",
)
def gpt2(config: Config) -> Model:
    d_model = config.main_size("n_embd", "hidden_size", default=768)
    heads = config.main_size("n_head", "num_attention_heads", default=12)
    longest = config.size("n_positions", "max_position_embeddings", default=1024)
    return _model(
        config,
        50257,
        d_model=d_model,
        layers=config.main_size("n_layer", "num_hidden_layers", default=12, most=MOST_LAYERS),
        attention=_heads(config, d_model, heads, **_attention(config)),
        mlp=_mlp(
            config, config.size("n_inner", default=4 * d_model), "activation_function", "gelu_new"
        ),
        tied=config.flag("tie_word_embeddings", True),
        position_rows=longest,
        longest=longest,
    )


def _attention(config: Config) -> dict[str, Any]:
    upcast = config.flag("reorder_and_upcast_attn", False)
    return {"fused": True, "softmax_in_fp32": False, "upcast": upcast}


@reader(
    """vocab_size hidden_size intermediate_size num_hidden_layers num_attention_heads hidden_act
    max_position_embeddings attention_bias use_parallel_residual rotary_pct rope_parameters
    rope_scaling tie_word_embeddings""",
    ignores="rotary_emb_base",
    classes="GPTNeoX",
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
        attention=_heads(config, d_model, heads, bias, fused=True, rotary=_rotary(config)),
        mlp=_mlp(
            config, config.main_size("intermediate_size", default=24576), "hidden_act", "gelu"
        ),
        tied=config.flag("tie_word_embeddings", False),
        longest=config.size("max_position_embeddings", default=LONGEST),
        parallel=config.flag("use_parallel_residual", True),
    )


def _rotary(config: Config) -> Rotary:
    """The old name of the field counts where the new ones do not say it."""
    rope = "rope_scaling" if config.fields.get("rope_scaling") else "rope_parameters"
    of_old = config.share("rotary_pct", 0.25)
    return Rotary(config.part(rope).share("partial_rotary_factor", of_old))


# layerdrop leaves out layers at random.
@reader(
    """vocab_size hidden_size ffn_dim num_hidden_layers num_attention_heads max_position_embeddings
    word_embed_proj_dim activation_function enable_bias layer_norm_elementwise_affine
    do_layer_norm_before _remove_final_layer_norm tie_word_embeddings""",
    ignores="init_std activation_dropout",
    only={"layerdrop": (0,)},
    letters={"ff": "ffn_dim"},
    classes="OPT",
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
        norm=Norm("layer", "before" if before else "post", 2 if affine else 0),
        final_norm=before and not config.flag("_remove_final_layer_norm", False),
        longest=longest,
    )


def _mlp(config: Config, width: int, name: str, usual: str, bias: bool = True) -> Mlp:
    return Mlp(width, gated=False, bias=bias, activation=known_activation(config, name, usual))


def _heads(config: Config, d_model: int, heads: int, bias: bool = True, **more: Any) -> Attention:
    width = share(config, d_model, heads)
    return Attention(heads, heads, width, width, qkv_bias=bias, out_bias=bias, **more)


def _model(config: Config, vocab: int, *, d_model: int, **more: Any) -> Model:
    return Model(
        name="",
        architecture="",
        vocab=config.main_size("vocab_size", default=vocab),
        d_model=d_model,
        **{"norm": Norm("layer", weights=2), **more},
    )

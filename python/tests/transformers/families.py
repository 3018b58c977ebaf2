"""Small randomly initialised models of transformers, a few layers of each family. SPDX-License-Identifier: MIT"""
import inspect
import os
import warnings

import pytest

try:
    import torch
    from transformers import CONFIG_MAPPING
    import transformers
except ImportError:
    if os.environ.get("POSENC_TORCH"):
        raise
    pytest.skip("PyTorch or transformers is not installed; POSENC_TORCH=1 ./dev test installs them",
                allow_module_level=True)

transformers.logging.set_verbosity_error()
warnings.filterwarnings("ignore", module="transformers")

# Sizes by the names that configurations have for them; a configuration takes those that it has.
SIZES = {
    "vocab_size": 97, "hidden_size": 64, "d_model": 64, "n_embd": 64, "intermediate_size": 96, "ffn_hidden_size": 96,
    "intermediate_size_mlp": 96, "n_inner": 96, "num_hidden_layers": 2, "n_layer": 2, "n_layers": 2,
    "num_attention_heads": 4, "n_head": 4, "n_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "rotary_dim": 8,
    "max_position_embeddings": 2048, "moe_intermediate_size": 32, "num_experts": 4, "num_local_experts": 4,
    "n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1, "n_shared_experts": 1,
    "shared_expert_intermediate_size": 32, "first_k_dense_replace": 1, "q_lora_rank": 24, "kv_lora_rank": 16,
    "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 16, "hidden_size_per_layer_input": 8,
    "vocab_size_per_layer_input": 97, "linear_num_value_heads": 4, "linear_num_key_heads": 2,
    "linear_key_head_dim": 8, "linear_value_head_dim": 8, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
    "embedding_size": 64, "global_head_dim": 32,
}

LLAMA3 = {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0,
          "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 512}
LONGROPE = {"rope_type": "longrope", "rope_theta": 10000.0, "original_max_position_embeddings": 64,
            "short_factor": [1.0 + 0.125 * i for i in range(8)], "long_factor": [1.0 + 1.5 * i for i in range(8)]}
DYNAMIC = {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 2.0}

# Name -> (model type, class of transformers, keys of the configuration beyond SIZES). "-" in a name: a variant.
CAUSAL = "AutoModelForCausalLM"
PLAIN = ("afmoe apertus arcee aria_text axk1 bailing_hybrid bitnet codegen cohere cohere2 cohere2_moe cwm deepseek_v3 "
         "deepseek_v4 diffllama doge ernie4_5 ernie4_5_moe exaone4 exaone_moe flex_olmo gemma gemma2 gemma3_text glm "
         "glm4 glm4_moe glm4_moe_lite gpt_neox gpt_neox_japanese gpt_oss gptj granite granite_swa granitemoe helium "
         "hunyuan_v1_dense hunyuan_v1_moe hy_v3 jais2 jetmoe laguna lfm2 llama llama4_text longcat_flash minicpm3 "
         "minimax minimax_m2 ministral ministral3 mistral mixtral modernbert-decoder nanochat olmo olmo2 olmo3 "
         "olmo_hybrid olmoe persimmon phi phi3 phimoe qwen2 qwen2_moe qwen3 qwen3_5_text qwen3_moe qwen3_next "
         "seed_oss smollm3 solar_open stablelm starcoder2 vaultgemma youtu").split()
FAMILIES = {name: (name, CAUSAL, {}) for name in PLAIN}
FAMILIES |= {
    "llama-llama3": ("llama", CAUSAL, {"rope_parameters": LLAMA3, "max_position_embeddings": 131072}),
    "llama-linear": ("llama", CAUSAL, {"rope_parameters": {"rope_type": "linear", "factor": 2.5, "rope_theta": 1e4}}),
    "llama-dynamic": ("llama", CAUSAL, {"rope_parameters": DYNAMIC}),
    "llama-yarn": ("llama", CAUSAL, {"rope_parameters": YARN}),
    "phi3-longrope": ("phi3", CAUSAL, {"rope_parameters": LONGROPE, "original_max_position_embeddings": 64}),
    "deepseek_v2": ("deepseek_v2", CAUSAL, {"num_experts_per_tok": 2}),
    "falcon": ("falcon", CAUSAL, {"head_dim": None}),
    "nemotron": ("nemotron", CAUSAL, {"num_key_value_heads": 2}),
    "qwen2_vl_text": ("qwen2_vl_text", "Qwen2VLTextModel", {
        "rope_parameters": {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [2, 3, 3]}}),
    "qwen2_5_vl_text": ("qwen2_5_vl_text", "Qwen2_5_VLTextModel", {
        "rope_parameters": {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [2, 3, 3]}}),
    "qwen3_vl_text": ("qwen3_vl_text", "Qwen3VLTextModel", {
        "rope_parameters": {"rope_type": "default", "rope_theta": 5e5, "mrope_section": [4, 2, 2]}}),
    "glm4v_text": ("glm4v_text", "Glm4vTextModel", {
        "rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5,
                            "mrope_section": [1, 1, 2]}}),
    "esm": ("esm", "EsmModel", {
        "vocab_size": 97, "pad_token_id": 0, "mask_token_id": 96, "token_dropout": False,
        "position_embedding_type": "rotary"}),
    "modernbert": ("modernbert", "ModernBertModel", {}),
    "eurobert": ("eurobert", "EuroBertModel", {}),
    "nomic_bert": ("nomic_bert", "NomicBertModel", {"head_dim": None}),
    "jina_embeddings_v3": ("jina_embeddings_v3", "JinaEmbeddingsV3Model", {}),
    "moonshine": ("moonshine", "MoonshineModel", {
        "encoder_num_hidden_layers": 2, "decoder_num_hidden_layers": 2, "encoder_num_attention_heads": 4,
        "decoder_num_attention_heads": 4, "encoder_num_key_value_heads": 4, "decoder_num_key_value_heads": 4}),
    "gemma3n_text": ("gemma3n_text", "Gemma3nTextModel", {
        "num_kv_shared_layers": 0, "activation_sparsity_pattern": [0.0, 0.0], "laurel_rank": 8}),
    "gemma4_text": ("gemma4_text", "Gemma4TextModel", {}),
}

# Size of the weights where it is not 0.7: the states of qwen3_next's linear attention enlarge last places tenfold.
WEIGHTS = {"qwen3_next": 0.5}

# Families without rotary embeddings: use() refuses them.
WITHOUT = {name: (name, CAUSAL, {}) for name in ("bloom", "mpt", "gpt2", "opt")}
WITHOUT |= {"falcon-alibi": ("falcon", CAUSAL, {"head_dim": None, "alibi": True}),
            "t5": ("t5", "T5EncoderModel", {"d_kv": 16, "num_heads": 4, "num_layers": 2})}

# Families that take no positions: the tests of FAMILIES do not fit, test_others.py has their own.
OTHERS = {"roformer": ("roformer", "RoFormerModel", {}),
          "roformer-decoder": ("roformer", "RoFormerForCausalLM", {"is_decoder": True})}


def small_config(model_type, more):
    """The configuration of a family in small sizes; more: keys that a family needs otherwise, None: left away."""
    cls = CONFIG_MAPPING[model_type]
    base = cls()
    keys = {}
    for key, value in SIZES.items():
        try:
            own = getattr(base, key)
        except AttributeError:
            continue
        except Exception:  # a key that varies over layers
            own = value
        if own is not None or key in ("head_dim", "pad_token_id"):
            keys[key] = value
    if "qk_rope_head_dim" in keys:  # latent attention: the rotated part has a width of its own, and all heads have keys
        keys.update({key: value for key, value in (("head_dim", 8), ("num_key_value_heads", 4)) if key in keys})
    kinds = sorted(set(getattr(base, "layer_types", None) or ()))
    if len(kinds) > 1:
        keys.update(layer_types=kinds, num_hidden_layers=len(kinds))
    keys.update(more)
    return cls(**{key: value for key, value in keys.items() if value is not None})


def small_model(name, seed=0, **more):
    """A model of a family in float32, ready to run, with weights of a size that makes attention uneven."""
    model_type, cls, keys = (FAMILIES | WITHOUT | OTHERS)[name]
    config = small_config(model_type, {**keys, **more})
    torch.manual_seed(seed)
    maker = getattr(transformers, cls)
    model = maker.from_config(config) if hasattr(maker, "from_config") else maker(config)
    generator = torch.Generator().manual_seed(seed)
    size = WEIGHTS.get(name, 0.7)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() >= 2 and parameter.requires_grad:  # roformer's rows are a frozen parameter
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * size / parameter.shape[-1] ** 0.5)
    return model.eval()


def takes(model, argument):
    return argument in inspect.signature(type(model).forward).parameters

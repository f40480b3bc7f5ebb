#include "doctor/model.h"

namespace dshang::doctor {

std::optional<double> of_model(const Json& config, std::initializer_list<const char*> names) {
  const Json* levels[] = {&config, config.contains("text_config") ? &config["text_config"] : nullptr};
  for (const Json* level : levels) {
    if (!level || !level->is_object()) continue;
    for (const char* name : names) {
      auto found = level->find(name);
      if (found != level->end() && found->is_number()) return found->get<double>();
    }
  }
  return std::nullopt;
}

std::optional<double> heads_of(const Json& config) {
  return of_model(config, {"num_attention_heads", "n_head", "n_heads", "num_heads"});
}

std::optional<double> kv_heads_of(const Json& config) {
  if (auto own = of_model(config, {"num_key_value_heads", "num_kv_heads", "n_head_kv"})) return own;
  auto shared = config.find("multi_query");
  if (shared != config.end() && *shared == true) return 1;
  return heads_of(config);
}

std::optional<double> parameters_of(const Json& config) {
  if (of_model(config, {"num_local_experts", "num_experts", "n_routed_experts"}).value_or(1) > 1)
    return std::nullopt;
  auto hidden = of_model(config, {"hidden_size", "n_embd", "d_model"});
  auto layers = of_model(config, {"num_hidden_layers", "n_layer", "num_layers"});
  auto vocabulary = of_model(config, {"vocab_size"});
  auto heads = heads_of(config);
  if (!hidden || !layers || !vocabulary || !heads || *heads == 0) return std::nullopt;
  auto inner = of_model(config, {"intermediate_size", "n_inner", "ffn_dim"});
  double kv = kv_heads_of(config).value_or(*heads) / *heads;
  double attention = *hidden * *hidden * (2 + 2 * kv);
  double feed = inner ? 3 * *hidden * *inner : 8 * *hidden * *hidden;  // with an inner size: gate, up, down
  auto tied = config.find("tie_word_embeddings");
  double embeddings = *vocabulary * *hidden * (tied != config.end() && *tied == false ? 2 : 1);
  return *layers * (attention + feed) + embeddings;
}

}  // namespace dshang::doctor

#include "folder_writer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "io/weight_source.h"

namespace kvasir::testing {
namespace {

struct FolderTensor {
  std::string name;
  std::vector<std::int64_t> shape;  // the last varies fastest
  std::vector<float> values;
};

const std::map<std::string, std::string, std::less<>> kModules = {
    {"token_embd", "model.embed_tokens"},
    {"output_norm", "model.norm"},
    {"output", "lm_head"},
    {"attn_norm", "input_layernorm"},
    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},
    {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.o_proj"},
    {"attn_q_norm", "self_attn.q_norm"},
    {"attn_k_norm", "self_attn.k_norm"},
    {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},
    {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
};
const std::map<std::string, std::string, std::less<>> kGemmaModules = {
    {"ffn_norm", "pre_feedforward_layernorm"},
    {"post_attention_norm", "post_attention_layernorm"},
    {"post_ffw_norm", "post_feedforward_layernorm"},
};
constexpr std::pair<const char*, const char*> kKeys[] = {
    {"embedding_length", "hidden_size"},
    {"block_count", "num_hidden_layers"},
    {"feed_forward_length", "intermediate_size"},
    {"attention.head_count", "num_attention_heads"},
    {"attention.head_count_kv", "num_key_value_heads"},
    {"attention.key_length", "head_dim"},
    {"context_length", "max_position_embeddings"},
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
    {"rope.freq_base", "rope_theta"},
    {"attention.sliding_window", "sliding_window"},
    {"attention.sliding_window_pattern", "sliding_window_pattern"},
};

std::vector<std::string> parts_of(std::string_view name) {
  std::vector<std::string> parts(1);
  for (const char c : name) {
    if (c == '.') {
      parts.emplace_back();
    } else {
      parts.back().push_back(c);
    }
  }
  return parts;
}

std::string folder_name(const std::vector<std::string>& parts, bool is_gemma) {
  const std::string& module = parts[parts.size() - 2];
  const bool is_other = is_gemma && kGemmaModules.contains(module);
  const std::string& name = is_other ? kGemmaModules.at(module) : kModules.at(module);
  return parts.size() == 2 ? name + "." + parts.back()
                           : fmt::format("model.layers.{}.{}.{}", parts[1], name, parts.back());
}

// Pairs (2i, 2i + 1) of each head to pairs (i, i + d/2).
std::vector<float> by_halves(const std::vector<float>& rows, std::int64_t row_length, std::int64_t head_dim) {
  std::vector<float> out(rows.size());
  const std::int64_t num_rows = std::ssize(rows) / row_length;
  for (std::int64_t row = 0; row < num_rows; ++row) {
    const std::int64_t head = row / head_dim, i = row % head_dim;
    const std::int64_t target = head * head_dim + i / 2 + i % 2 * (head_dim / 2);
    std::memcpy(out.data() + target * row_length, rows.data() + row * row_length,
                static_cast<std::size_t>(row_length) * sizeof(float));
  }
  return out;
}

FolderTensor folder_tensor(const TensorView& tensor, const std::string& architecture, std::int64_t head_dim) {
  FolderTensor out;
  const std::vector<std::string> parts = parts_of(tensor.name);
  out.name = folder_name(parts, architecture == "gemma3");
  out.shape.assign(tensor.shape.rend() - tensor.rank, tensor.shape.rend());
  out.values.resize(static_cast<std::size_t>(tensor.num_elements()));
  info_of(tensor.dtype).unpack_row(tensor.data, tensor.num_elements(), out.values.data());
  const std::string& module = parts[parts.size() - 2];
  if (architecture == "llama" && (module == "attn_q" || module == "attn_k")) {
    out.values = by_halves(out.values, tensor.row_length(), head_dim);
  }
  if (architecture == "gemma3" && module.ends_with("norm")) {
    for (float& value : out.values) value -= 1.0f;
  }
  return out;
}

void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

void write_shard(const std::string& path, const std::vector<FolderTensor>& tensors, std::size_t begin,
                 std::size_t end) {
  std::string header = "{", data;
  for (std::size_t i = begin; i < end; ++i) {
    const FolderTensor& tensor = tensors[i];
    const std::size_t first = data.size();
    data.append(reinterpret_cast<const char*>(tensor.values.data()), tensor.values.size() * sizeof(float));
    header += fmt::format(R"({}"{}":{{"dtype":"F32","shape":[{}],"data_offsets":[{},{}]}})", i > begin ? "," : "",
                          tensor.name, fmt::join(tensor.shape, ","), first, data.size());
  }
  header += "}";
  const std::uint64_t length = header.size();  // not padded: the data lie at any address
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  write_file(path, bytes + header + data);
}

void write_tensors(const std::string& folder, const std::vector<FolderTensor>& tensors, int num_shards) {
  if (num_shards == 1) {
    write_shard(folder + "/model.safetensors", tensors, 0, tensors.size());
    return;
  }
  const auto count = static_cast<std::size_t>(num_shards);
  std::string map;
  for (std::size_t shard = 0; shard < count; ++shard) {
    const std::string name = fmt::format("model-{:05}-of-{:05}.safetensors", shard + 1, num_shards);
    const std::size_t begin = shard * tensors.size() / count, end = (shard + 1) * tensors.size() / count;
    write_shard(folder + "/" + name, tensors, begin, end);
    for (std::size_t i = begin; i < end; ++i) {
      map += fmt::format(R"({}"{}":"{}")", map.empty() ? "" : ",", tensors[i].name, name);
    }
  }
  write_file(folder + "/model.safetensors.index.json", fmt::format(R"({{"weight_map":{{{}}}}})", map));
}

std::string config_text(const io::Metadata& metadata, const std::string& architecture, std::int64_t head_dim,
                        const std::string& more) {
  std::string text = fmt::format(R"({{"model_type":"{}")", architecture == "gemma3" ? "gemma3_text" : architecture);
  text += more;  // before the file's own, so that it wins
  for (const auto& [gguf, name] : kKeys) {
    const auto value = metadata.find_float(architecture + "." + gguf);
    if (value && *value) text += fmt::format(R"(,"{}":{})", name, **value);
  }
  if (architecture == "gemma3") text += fmt::format(R"(,"query_pre_attn_scalar":{})", head_dim);
  if (const auto factor = metadata.find_float(architecture + ".rope.scaling.factor"); factor && *factor) {
    text += fmt::format(R"(,"rope_scaling":{{"rope_type":"linear","factor":{}}})", **factor);
  }
  return text + "}";
}

}  // namespace

void write_folder(const std::string& gguf_path, const std::string& folder, const FolderOptions& options) {
  const auto source = io::open_gguf(gguf_path);
  CHECK(source);
  const io::Metadata& metadata = (*source)->metadata();
  const std::string architecture = metadata.get_string("general.architecture").value();
  const std::string prefix = architecture + ".";
  const std::int64_t heads = metadata.get_int(prefix + "attention.head_count", 1, 64).value();
  const std::int64_t hidden = metadata.get_int(prefix + "embedding_length", 1, 4096).value();
  const auto key_length = metadata.find_int(prefix + "attention.key_length", 1, 4096).value();
  const std::int64_t head_dim = key_length.value_or(hidden / heads);
  std::filesystem::create_directories(folder);
  write_file(folder + "/config.json", config_text(metadata, architecture, head_dim, options.more_config));
  std::vector<FolderTensor> tensors;
  for (const TensorView& tensor : (*source)->tensors()) {
    if (tensor.name == "rope_freqs.weight") continue;  // config.json says where they come from
    tensors.push_back(folder_tensor(tensor, architecture, head_dim));
    if (options.change) options.change(tensors.back().name, tensors.back().values);
  }
  write_tensors(folder, tensors, options.num_shards);
}

}  // namespace kvasir::testing

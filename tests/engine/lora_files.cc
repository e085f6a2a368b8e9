#include "lora_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string_view>
#include <utility>

namespace kvasir::testing {
namespace {

void write_file(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void put_string(std::string& out, std::string_view text) {
  put(out, std::uint64_t{text.size()});
  out += text;
}

void put_floats(std::string& out, const std::vector<float>& numbers) {
  out.append(reinterpret_cast<const char*>(numbers.data()), 4 * numbers.size());
}

constexpr std::size_t kAlignment = 32;

struct GgufTensor {
  std::string name;
  std::int64_t row_length = 0, num_rows = 0;
  const std::vector<float>* numbers = nullptr;
};

void pad(std::string& out) { out.resize((out.size() + kAlignment - 1) / kAlignment * kAlignment); }

// "blk.3.attn_q.weight": "base_model.model.model.layers.3.self_attn.q_proj".
std::string module_of(const std::string& name) {
  static constexpr std::array kNames = std::to_array<std::pair<std::string_view, std::string_view>>(
      {{"attn_q", "self_attn.q_proj"}, {"attn_k", "self_attn.k_proj"}, {"attn_v", "self_attn.v_proj"},
       {"attn_output", "self_attn.o_proj"}, {"ffn_gate", "mlp.gate_proj"}, {"ffn_up", "mlp.up_proj"},
       {"ffn_down", "mlp.down_proj"}});
  const std::size_t layer_end = name.find('.', 4), end = name.rfind('.');
  const std::string part = name.substr(layer_end + 1, end - layer_end - 1);
  const auto* const found = std::ranges::find(kNames, part, &std::pair<std::string_view, std::string_view>::first);
  return fmt::format("base_model.model.model.layers.{}.{}", name.substr(4, layer_end - 4), found->second);
}

std::int64_t heads_of(const io::WeightSource& model, const std::string& name) {
  const bool is_q = name.contains("attn_q."), is_k = name.contains("attn_k.");
  if (!is_q && !is_k) return 0;
  return model.metadata().get_int(is_q ? "llama.attention.head_count" : "llama.attention.head_count_kv", 1, 1024).value();
}

// Row i of a folder's queries, by GGUF's row: halves of a head turn together there.
std::vector<float> folder_rows(const LoraMatrix& matrix, std::int64_t num_heads) {
  if (num_heads == 0) return matrix.b;
  std::vector<float> rows(matrix.b.size());
  const std::int64_t head_dim = matrix.num_outputs / num_heads;
  for (std::int64_t row = 0; row < matrix.num_outputs; ++row) {
    const std::int64_t i = row % head_dim, to = row - i + (i % 2 == 0 ? i / 2 : head_dim / 2 + i / 2);
    std::copy_n(matrix.b.begin() + row * matrix.rank, matrix.rank, rows.begin() + to * matrix.rank);
  }
  return rows;
}

}  // namespace

LoraNumbers random_lora(const io::WeightSource& model, std::int32_t rank, std::uint32_t seed) {
  LoraNumbers numbers;
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  for (const TensorView& tensor : model.tensors()) {
    if (!tensor.name.starts_with("blk.") || tensor.rank != 2) continue;
    LoraMatrix matrix{.name = tensor.name, .rank = rank, .num_inputs = tensor.row_length(), .num_outputs = tensor.num_rows(),
                      .a = {}, .b = {}};
    for (std::int64_t i = 0; i < rank * matrix.num_inputs; ++i) matrix.a.push_back(0.1f * normal(random));
    for (std::int64_t i = 0; i < rank * matrix.num_outputs; ++i) matrix.b.push_back(0.1f * normal(random));
    numbers.push_back(std::move(matrix));
  }
  return numbers;
}

void write_gguf_lora(const LoraNumbers& numbers, const std::string& architecture, float alpha, const std::string& path) {
  constexpr std::uint32_t kString = 8, kFloat = 6, kF32 = 0;
  std::vector<GgufTensor> tensors;
  for (const LoraMatrix& matrix : numbers) {
    tensors.push_back({matrix.name + ".lora_a", matrix.num_inputs, matrix.rank, &matrix.a});
    tensors.push_back({matrix.name + ".lora_b", matrix.rank, matrix.num_outputs, &matrix.b});
  }
  std::string out = "GGUF";
  put(out, std::uint32_t{3});
  put(out, std::uint64_t{tensors.size()});
  put(out, std::uint64_t{4});
  const std::pair<std::string_view, std::string_view> texts[] = {
      {"general.architecture", architecture}, {"general.type", "adapter"}, {"adapter.type", "lora"}};
  for (const auto& [key, value] : texts) {
    put_string(out, key);
    put(out, kString);
    put_string(out, value);
  }
  put_string(out, "adapter.lora.alpha");
  put(out, kFloat);
  put(out, alpha);
  std::string data;
  for (const GgufTensor& tensor : tensors) {
    put_string(out, tensor.name);
    put(out, std::uint32_t{2});
    put(out, std::uint64_t(tensor.row_length));
    put(out, std::uint64_t(tensor.num_rows));
    put(out, kF32);
    put(out, std::uint64_t{data.size()});
    put_floats(data, *tensor.numbers);
    pad(data);
  }
  pad(out);
  write_file(path, out + data);
}

void write_peft_lora(const LoraNumbers& numbers, const io::WeightSource& model, const std::string& config,
                     const std::string& folder) {
  std::filesystem::create_directories(folder);
  write_file(folder + "/adapter_config.json", "{\"peft_type\":\"LORA\"," + config + "}");
  std::string header = "{", data;
  const auto add = [&](const std::string& name, std::int64_t num_rows, std::int64_t num_columns, const std::vector<float>& values) {
    const std::size_t begin = data.size();
    put_floats(data, values);
    header += fmt::format("{}\"{}\":{{\"dtype\":\"F32\",\"shape\":[{},{}],\"data_offsets\":[{},{}]}}", header.size() == 1 ? "" : ",",
                          name, num_rows, num_columns, begin, data.size());
  };
  for (const LoraMatrix& matrix : numbers) {
    const std::string module = module_of(matrix.name);
    add(module + ".lora_A.weight", matrix.rank, matrix.num_inputs, matrix.a);
    add(module + ".lora_B.weight", matrix.num_outputs, matrix.rank, folder_rows(matrix, heads_of(model, matrix.name)));
  }
  header += "}";
  std::string out;
  put(out, std::uint64_t{header.size()});
  write_file(folder + "/adapter_model.safetensors", out + header + data);
}

void write_merged(const std::string& model_path, const io::WeightSource& model, const LoraNumbers& numbers, float factor,
                  const std::string& path) {
  std::ifstream in(model_path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  for (const LoraMatrix& matrix : numbers) {
    const TensorView& tensor = *model.find(matrix.name);
    // Weights are random, so the first row is found by its bytes.
    const std::string_view whole(reinterpret_cast<const char*>(tensor.data), static_cast<std::size_t>(tensor.num_bytes()));
    const std::size_t begin = bytes.find(whole);
    for (std::int64_t row = 0; row < matrix.num_outputs; ++row) {
      for (std::int64_t column = 0; column < matrix.num_inputs; ++column) {
        double sum = 0;
        for (std::int64_t i = 0; i < matrix.rank; ++i) {
          sum += double{matrix.b[static_cast<std::size_t>(row * matrix.rank + i)]} *
                 matrix.a[static_cast<std::size_t>(i * matrix.num_inputs + column)];
        }
        const std::size_t at = begin + 4 * static_cast<std::size_t>(row * matrix.num_inputs + column);
        float value = 0;
        std::memcpy(&value, bytes.data() + at, 4);
        value += static_cast<float>(factor * sum);
        std::memcpy(bytes.data() + at, &value, 4);
      }
    }
  }
  write_file(path, bytes);
}

}  // namespace kvasir::testing

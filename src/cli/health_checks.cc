#include "cli/health_checks.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "base/text_file.h"
#include "base/units.h"
#include "engine/host_isa.h"
#include "store/child_process.h"
#include "store/model_store.h"

namespace kvasir::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kLittleMemoryBytes = std::int64_t{1} << 30;
constexpr std::int64_t kLittleDiskBytes = std::int64_t{1} << 30;

HealthCheck check_isa() {
  const std::string best = host_isas().front();
  if (best != "ref") return {"instruction set", true, best};
  return {"instruction set", false, "this processor has no AVX2, which x86 needs: the scalar kernels are right, but slow"};
}

HealthCheck check_quota(const Machine& machine) {
  if (!machine.cpu_quota) return {"cpu quota", true, "none"};
  const double quota = *machine.cpu_quota;
  const bool whole = quota >= 1.0;
  return {
      "cpu quota", whole,
      fmt::format("{:.2f} CPUs{}", quota, whole ? "" : ": less than one core, every step will be throttled")};
}

HealthCheck check_memory(const Machine& machine) {
  const bool ok = machine.available_memory_bytes >= kLittleMemoryBytes;
  return {"memory", ok,
          fmt::format("{} of {} available{}", format_bytes(machine.available_memory_bytes),
                      format_bytes(machine.total_memory_bytes), ok ? "" : ": only very small models fit")};
}

HealthCheck check_huge_pages() {
  const auto setting = read_text_file("/sys/kernel/mm/transparent_hugepage/enabled");
  if (!setting) return {"huge pages", false, "the kernel does not say: weights will use small pages"};
  for (const char* usable : {"always", "madvise"}) {
    if (setting->find(fmt::format("[{}]", usable)) != std::string::npos) return {"huge pages", true, usable};
  }
  return {"huge pages", false,
          "off; try: echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"};
}

// The nearest folder above that exists: where a store that is not there yet would be made.
fs::path existing_part(fs::path path) {
  std::error_code ignored;
  while (!path.empty() && path != path.root_path() && !fs::exists(path, ignored)) path = path.parent_path();
  return path;
}

HealthCheck check_store() {
  const auto home = store::ModelStore::default_home();
  if (!home) return {"model store", false, home.error().message};
  const fs::path folder = existing_part(*home);
  std::error_code error;
  const fs::space_info space = fs::space(folder, error);
  if (error) return {"model store", false, fmt::format("{}: {}", home->native(), error.message())};
  if (::access(folder.c_str(), W_OK) != 0) {
    return {"model store", false, fmt::format("{}: cannot be written; set KVASIR_HOME", home->native())};
  }
  const auto free_bytes = static_cast<std::int64_t>(space.available);
  return {"model store", free_bytes >= kLittleDiskBytes,
          fmt::format("{}, {} free on disk", home->native(), format_bytes(free_bytes))};
}

HealthCheck check_pip() {
  const auto exit = store::run_child({"python3", "-m", "pip", "--version"}, {}, [] { return true; });
  if (!exit) return {"python3 and pip", false, exit.error().message + ": `pull` needs it"};
  if (exit->code != 0) return {"python3 and pip", false, "python3 has no pip: `pull` needs it"};
  return {"python3 and pip", true, "found"};
}

}  // namespace

std::vector<HealthCheck> check_health(const Machine& machine) {
  return {check_isa(),        check_quota(machine), check_memory(machine),
          check_huge_pages(), check_store(),        check_pip()};
}

}  // namespace kvasir::cli

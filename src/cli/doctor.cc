// kvasir doctor: what this machine is, what it does at most, and what could stand in the way.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/cpu_load.h"
#include "base/json_writer.h"
#include "base/machine.h"
#include "base/units.h"
#include "cli/health_checks.h"
#include "cli/machine_report.h"
#include "cli/standard_output.h"
#include "cli/verb.h"
#include "engine/host_isa.h"

namespace kvasir::cli {
namespace {

struct Diagnosis {
  Machine machine;
  std::vector<std::string> isas;  // best first
  std::string isa;                // the one an engine would use now
  MachineLimits limits;
  std::optional<double> busy_share;  // of the processors' time while these were measured: other programs'
  std::vector<DeviceDescription> devices;
  std::vector<HealthCheck> checks;
};

Result<Diagnosis> diagnose(const GlobalOptions& globals) {
  Diagnosis diagnosis;
  diagnosis.machine = describe_machine();
  diagnosis.isas = host_isas();
  diagnosis.isa = globals.isa.empty() ? diagnosis.isas.front() : globals.isa;
  if (std::ranges::find(diagnosis.isas, diagnosis.isa) == diagnosis.isas.end()) {
    return make_error(
        ErrorKind::kUsage,
        fmt::format("--isa: this host runs {}, not '{}'", fmt::join(diagnosis.isas, ", "), diagnosis.isa),
        "isa");
  }
  const CpuLoadMeter load;
  KVASIR_TRY(diagnosis.limits, measure_limits(globals.threads));
  diagnosis.busy_share = load.others_share();
  diagnosis.devices = describe_devices();
  diagnosis.checks = check_health(diagnosis.machine);
  return diagnosis;
}

void write_machine(JsonWriter& json, const Diagnosis& diagnosis) {
  const Machine& machine = diagnosis.machine;
  json.member("cpu", machine.cpu_model).member("isa", diagnosis.isa).key("isas").begin_array();
  for (const std::string& isa : diagnosis.isas) json.value(isa);
  json.end_array();
  json.key("cores")
      .begin_object()
      .member("logical", machine.num_logical_cpus)
      .member("physical", machine.num_physical_cores)
      .member("usable", usable_physical_cores(machine));
  if (machine.cpu_quota) {
    json.member("quota", *machine.cpu_quota);
  } else {
    json.member_null("quota");
  }
  json.end_object()
      .key("memory")
      .begin_object()
      .member("total_bytes", machine.total_memory_bytes)
      .member("available_bytes", machine.available_memory_bytes)
      .end_object();
}

void write_devices(JsonWriter& json, const Diagnosis& diagnosis) {
  json.key("devices").begin_array();
  for (const DeviceDescription& device : diagnosis.devices) {
    const bool is_host = device.kind == "cpu";
    json.begin_object()
        .member("name", device.name)
        .member("kind", device.kind)
        .member("memory_bytes", is_host ? diagnosis.machine.total_memory_bytes : device.memory_bytes)
        .member("usable", device.is_usable)
        .member("detail", device.detail)
        .end_object();
  }
  json.end_array();
}

void print_diagnosis_json(const Diagnosis& diagnosis) {
  std::string out;
  JsonWriter json(out, JsonWriter::Style::kPretty);
  json.begin_object();
  write_machine(json, diagnosis);
  json.key("limits");
  write_limits(json, diagnosis.limits);
  json.key("read_bandwidth").begin_array();
  for (const ReadBandwidth& level : diagnosis.limits.levels) {
    json.begin_object()
        .member("level", level.level)
        .member("all_threads_gb_s", level.all_threads_gb_s)
        .member("one_thread_gb_s", level.one_thread_gb_s)
        .end_object();
  }
  json.end_array();
  if (diagnosis.busy_share) json.member("busy_share", *diagnosis.busy_share);
  write_devices(json, diagnosis);
  json.key("checks").begin_array();
  for (const HealthCheck& check : diagnosis.checks) {
    json.begin_object()
        .member("name", check.name)
        .member("ok", check.ok)
        .member("detail", check.detail)
        .end_object();
  }
  json.end_array().end_object();
  print(out + "\n");
}

// Other programs that take this share of the processors slow the probes noticeably.
constexpr double kBusyShare = 0.1;

std::string describe_busy(double share) {
  const std::string taken = fmt::format("other programs took {:.0f}% of the processors' time", 100 * share);
  if (share < kBusyShare) return taken;
  return taken + ": the speeds above are too low; measure again when the machine is idle";
}

void print_diagnosis(const Diagnosis& diagnosis) {
  const Machine& machine = diagnosis.machine;
  print(fmt::format("{:<16}{}\n", "cpu", machine.cpu_model));
  print(fmt::format("{:<16}{} (of {})\n", "isa", diagnosis.isa, fmt::join(diagnosis.isas, ", ")));
  print(fmt::format("{:<16}{} physical, {} logical, {} to use\n", "cores", machine.num_physical_cores,
                    machine.num_logical_cpus, usable_physical_cores(machine)));
  print(fmt::format("{:<16}{}, {} available\n", "memory", format_bytes(machine.total_memory_bytes),
                    format_bytes(machine.available_memory_bytes)));
  print(fmt::format("{:<16}{}\n", "limits", describe_limits(diagnosis.limits)));
  for (const ReadBandwidth& level : diagnosis.limits.levels) {
    print(fmt::format("{:<16}reads {:.1f} GB/s, {:.1f} from one thread\n", "  " + level.level,
                      level.all_threads_gb_s, level.one_thread_gb_s));
  }
  if (diagnosis.busy_share) {
    print(fmt::format("{:<16}{}\n", "busy", describe_busy(*diagnosis.busy_share)));
  }
  for (const DeviceDescription& device : diagnosis.devices) {
    if (device.kind == "cpu") continue;
    print(fmt::format("{:<16}{}{}\n", device.name, device.is_usable ? "" : "not usable: ", device.detail));
  }
  for (const HealthCheck& check : diagnosis.checks) {
    print(fmt::format("{:<5}{:<18}{}\n", check.ok ? "ok" : "NO", check.name, check.detail));
  }
}

Result<int> doctor(const GlobalOptions& globals) {
  KVASIR_TRY(const Diagnosis diagnosis, diagnose(globals));
  if (globals.json) {
    print_diagnosis_json(diagnosis);
  } else {
    print_diagnosis(diagnosis);
  }
  const bool healthy = std::ranges::all_of(diagnosis.checks, &HealthCheck::ok);
  return finish_output(healthy ? kExitDone : kExitNo);
}

}  // namespace

void add_doctor(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("doctor", "Measure this machine and check its setup");
  on_chosen(*verb, context, [&context] { return doctor(context.options); });
}

}  // namespace kvasir::cli

// What the hub's files say about a model, without its weights.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "kvasir/result.h"
#include "store/hub/hub_name.h"
#include "store/hub/hub_settings.h"
#include "store/progress.h"

namespace kvasir::store {

// A folder for temporary files with the model's own: small ones whole; those of weights are as long as they are on the
// hub, and hold nothing behind their headers, so that they take no room. The folder goes with the object.
class HubHeaders {
 public:
  // Errors: as of HubClient, and kMachine (the disk).
  static Result<HubHeaders> fetch(const HubSettings& settings, const HubName& name, const TransferEvents& events);
  HubHeaders(HubHeaders&& other) noexcept;
  HubHeaders& operator=(HubHeaders&&) = delete;
  ~HubHeaders();

  // What opens the model: a GGUF file or a folder.
  const std::filesystem::path& path() const { return path_; }
  const std::filesystem::path& folder() const { return folder_; }
  // As the model's card says; may be empty.
  const std::string& license() const { return license_; }

 private:
  explicit HubHeaders(std::filesystem::path folder) : folder_(std::move(folder)) {}

  std::filesystem::path folder_, path_;
  std::string license_;
};

}  // namespace kvasir::store

#include "server/api/files/upload.h"

#include <fmt/format.h>

#include <charconv>
#include <ctime>
#include <exception>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "base/memory_reserve.h"
#include "base/printable.h"
#include "server/api/stored_things.h"

namespace kvasir::server::api {
namespace {

constexpr std::size_t kMaxFieldBytes = 4096;

// Puts a part into the store. The first one brings the object, with the size that it may come to.
ApiStatus put_part(stored::ObjectStore& store, const stored::Object& object, std::optional<std::int64_t> expected_bytes,
                   const stored::Part& part) {
  try {
    const MemoryReserve::Spared spared;
    Status done = expected_bytes ? store.begin_unseen(object, *expected_bytes) : Status();
    if (done) done = store.append(object.id, part);
    if (!done) return std::unexpected(to_store_error(done.error()));
    return {};
  } catch (const std::bad_alloc&) {
    return std::unexpected(ApiError{503, "out of memory: the file could not be stored", {}, "overloaded"});
  }
}

// Of the whole body; 0: the client does not say.
std::int64_t announced_bytes(const http::Request& head) {
  const std::string* const length = head.header("Content-Length");
  std::int64_t bytes = 0;
  if (length != nullptr) std::from_chars(length->data(), length->data() + length->size(), bytes);
  return bytes;
}

}  // namespace

ApiResult<std::shared_ptr<Upload>> Upload::open(const ApiContext& context, const http::Request& head,
                                                const auth::Tenant& tenant) {
  KVASIR_TRY(http::FormReader form, http::FormReader::open(head));
  KVASIR_CHECKED(check_store(context));
  return std::make_shared<Upload>(context, std::move(form), tenant.key_id, announced_bytes(head));
}

Upload::~Upload() {
  if (!is_in_store_ || is_kept_ || context_.stored == nullptr) return;
  try {
    store_of(context_).post([id = id_](stored::ObjectStore& store) { static_cast<void>(store.erase_unseen(id)); });
  } catch (const std::exception&) {
    // Out of memory: the store erases it when it closes.
  }
}

ApiResult<bool> Upload::write(std::string_view bytes, Resume resume) {
  KVASIR_CHECKED(form_.read(bytes, *this));
  if (std::ssize(part_) < kFilePartBytes) return true;
  store_part(std::move(resume));
  return false;
}

ApiStatus Upload::begin_part(std::string name, std::string file_name) {
  if (name != "file") {
    const auto [place, is_new] = fields_.try_emplace(std::move(name));
    if (!is_new) return bad_request(fmt::format("{} comes twice", printable(place->first)), printable(place->first));
    field_ = &place->second;
    return {};
  }
  if (std::exchange(has_file_, true)) return bad_request("file comes twice: one file an upload", "file");
  field_ = nullptr;
  file_name_ = file_name.empty() ? "file" : printable(file_name);
  return {};
}

ApiStatus Upload::content(std::string_view bytes) {
  if (field_ == nullptr) {
    part_ += bytes;
    num_bytes_ += std::ssize(bytes);
    return {};
  }
  if (field_->size() + bytes.size() > kMaxFieldBytes) {
    return bad_request(fmt::format("a field of more than {} bytes beside the file", kMaxFieldBytes), {}, "bad_form");
  }
  *field_ += bytes;
  return {};
}

void Upload::store_part(Resume resume) {
  std::optional<std::int64_t> expected_bytes;
  if (!std::exchange(is_in_store_, true)) expected_bytes = expected_bytes_;
  const auto part = std::make_shared<const stored::Part>(stored::Part{.name = {}, .bytes = std::exchange(part_, {})});
  store_of(context_).post([object = object(), part, expected_bytes, resume = std::move(resume)](stored::ObjectStore& store) {
    resume(put_part(store, object, expected_bytes, *part));
  });
}

// From now; 0: it does not expire.
ApiResult<std::int64_t> Upload::expiry_s() const {
  const auto field = fields_.find("expires_after[seconds]");
  if (field == fields_.end()) return 0;
  constexpr std::int64_t kLeast = 3600, kMost = 2'592'000;
  std::int64_t seconds = 0;
  const std::string& text = field->second;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error == std::errc() && rest == text.data() + text.size() && seconds >= kLeast && seconds <= kMost) return seconds;
  return bad_request(fmt::format("expires_after[seconds] must be a whole number from {} to {}, got '{}'", kLeast,
                                 kMost, printable(std::string_view(text).substr(0, 32))),
                     "expires_after");
}

ApiStatus Upload::finish() {
  KVASIR_CHECKED(form_.finish());
  const auto purpose = fields_.find("purpose");
  if (purpose == fields_.end()) return bad_request("purpose is missing", "purpose", "missing_parameter");
  if (purpose->second != kBatchPurpose) {
    return bad_request(fmt::format("purpose must be \"batch\" here, got \"{}\"",
                                   printable(std::string_view(purpose->second).substr(0, 64))),
                       "purpose");
  }
  if (!has_file_) return bad_request("file is missing", "file", "missing_parameter");
  if (num_bytes_ == 0) return bad_request("file must not be empty", "file");
  KVASIR_TRY(const std::int64_t lasts_s, expiry_s());
  created_s_ = static_cast<std::int64_t>(std::time(nullptr));
  expires_s_ = lasts_s == 0 ? 0 : created_s_ + lasts_s;
  return {};
}

stored::Object Upload::object() const {
  return file_object({.id = id_,
                      .name = file_name_,
                      .purpose = kBatchPurpose,
                      .bytes = num_bytes_,
                      .created_s = created_s_,
                      .expires_s = expires_s_},
                     owner_);
}

ApiResult<std::string> Upload::keep(stored::ObjectStore& store) {
  const stored::Object file = object();
  if (!is_in_store_) {
    const Status added = store.add(file, parts_of(part_));
    if (!added) return std::unexpected(to_store_error(added.error()));
    return file.json;
  }
  if (!part_.empty()) KVASIR_CHECKED(put_part(store, file, std::nullopt, {.name = {}, .bytes = std::exchange(part_, {})}));
  const Status shown = store.show(file);
  if (!shown) return std::unexpected(to_store_error(shown.error()));
  is_kept_ = true;
  return file.json;
}

}  // namespace kvasir::server::api

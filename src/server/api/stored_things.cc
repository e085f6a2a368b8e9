#include "server/api/stored_things.h"

#include <fmt/format.h>

#include <boost/asio/post.hpp>
#include <chrono>
#include <vector>

#include "base/printable.h"

namespace kvasir::server::api {
namespace {

// With the time in which a key's file is looked at, less than a second.
constexpr std::chrono::milliseconds kKeyInterval{250};

const ApiError kRevoked = {401, "the API key was revoked", {}, "invalid_api_key"};

}  // namespace

StoredThings::~StoredThings() {
  is_closing_ = true;
  boost::asio::post(background_, [this] { key_timer_.cancel(); });
  batches_.stop();
  background_.join();
}

void StoredThings::watch_keys(AdmitsStill admits_still) {
  admits_still_ = std::move(admits_still);
  boost::asio::post(background_, [this] { await_look(); });
}

void StoredThings::await_look() {
  if (is_closing_) return;
  key_timer_.expires_after(kKeyInterval);
  key_timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    try {
      end_revoked();
    } catch (const std::exception&) {
      // Out of memory: the next look tries again.
    }
    await_look();
  });
}

void StoredThings::end_revoked() {
  std::vector<std::shared_ptr<BackgroundWriter>> runs;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, run] : runs_) {
      if (auto running = run.lock()) runs.push_back(std::move(running));
    }
  }
  for (const auto& run : runs) {
    if (!admits_still_(run->request().tenant)) run->give_up(kRevoked);
  }
  batches_.fail_where(
      [this](const auth::Tenant& tenant) { return !admits_still_(tenant); },
      {.code = kRevoked.code, .message = kRevoked.message});
}

void StoredThings::add_run(const std::string& id, const std::shared_ptr<BackgroundWriter>& run) {
  const std::lock_guard lock(mutex_);
  runs_[id] = run;
}

void StoredThings::remove_run(const std::string& id) {
  const std::lock_guard lock(mutex_);
  runs_.erase(id);
}

void StoredThings::abort_run(const std::string& id) {
  std::shared_ptr<BackgroundWriter> run;
  {
    const std::lock_guard lock(mutex_);
    const auto found = runs_.find(id);
    if (found != runs_.end()) run = found->second.lock();
  }
  if (run != nullptr) run->abort();
}

stored::StoreThread& store_of(const ApiContext& context) { return context.stored->store(); }

ApiStatus check_store(const ApiContext& context) {
  if (context.stored == nullptr) return bad_request("nothing is stored here", {}, "unsupported");
  if (!context.stored->store().is_behind()) return {};
  return std::unexpected(ApiError{503, "the store is behind: the disk of --state-dir is too slow", {}, "overloaded"});
}

ApiError to_store_error(Error error) {
  switch (error.kind) {
    case ErrorKind::kUnmet:
      return {413, std::move(error.message), {}, "limit_exceeded"};
    case ErrorKind::kUnavailable:
      return {503, std::move(error.message), {}, "overloaded"};
    default:
      return {500, "the store failed: " + error.message, {}, "internal_error"};
  }
}

ApiError no_such(std::string_view what, const std::string& id, std::string_view param) {
  return {404, fmt::format("{} with id '{}' not found.", what, printable(std::string_view(id).substr(0, 128))),
          std::string(param)};
}

ApiResult<std::string> stored_page(stored::ObjectStore& store, stored::Kind kind, const std::string& owner,
                                   const PageQuery& page, const std::string& parent) {
  const auto listing = store.list(kind, owner, parent, page.after, page.limit, page.is_descending);
  if (!listing) return std::unexpected(to_store_error(listing.error()));
  if (!listing->knows_after) return std::unexpected(no_such("An object", page.after, "after"));
  std::vector<ListedItem> items;
  for (const stored::Object& object : listing->objects) items.push_back({object.id, object.json});
  return page_json(items, listing->has_more);
}

}  // namespace kvasir::server::api

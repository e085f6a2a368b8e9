// The store, and work that no connection waits for: both outlive a request.
#pragma once

#include <atomic>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "base/memory_reserve.h"
#include "server/api/api_context.h"
#include "server/api/background_writer.h"
#include "server/api/batches/batch_runner.h"
#include "server/api/endpoint.h"
#include "server/api/list_page.h"
#include "server/stored/store_thread.h"

namespace kvasir::server::api {

// Thread safety: any thread.
class StoredThings {
 public:
  // The context is that of the server, which will have this as its `stored`.
  StoredThings(ApiContext& context, std::unique_ptr<stored::ObjectStore> store)
      : batches_(context, background_.get_executor()), store_(std::move(store)) {}
  // Requires: the engine has ended all requests.
  ~StoredThings();
  StoredThings(const StoredThings&) = delete;
  StoredThings& operator=(const StoredThings&) = delete;

  stored::StoreThread& store() { return store_; }
  BatchRunner& batches() { return batches_; }
  // The executor has one thread.
  boost::asio::any_io_executor executor() { return background_.get_executor(); }

  // Ends the work of keys that are valid no more, within a second. Call it once. `admits_still` is called on
  // the executor.
  using AdmitsStill = std::function<bool(const auth::Tenant& tenant)>;
  void watch_keys(AdmitsStill admits_still);

  void add_run(const std::string& id, const std::shared_ptr<BackgroundWriter>& run);
  void remove_run(const std::string& id);
  void abort_run(const std::string& id);

 private:
  void await_look();
  void end_revoked();

  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<BackgroundWriter>> runs_;  // guarded
  AdmitsStill admits_still_;                                     // null: nobody was asked for a key
  std::atomic<bool> is_closing_{false};
  boost::asio::thread_pool background_{1};
  boost::asio::steady_timer key_timer_{background_};
  BatchRunner batches_;
  stored::StoreThread store_;  // last: what it runs at the end may post to all of the above
};

// The refusal where nothing is stored (503 while the store is behind).
ApiStatus check_store(const ApiContext& context);
// The store's error as an answer.
ApiError to_store_error(Error error);
ApiError no_such(std::string_view what, const std::string& id, std::string_view param);

// A page of the owner's objects, of one `parent` unless that is empty. Error: 404 for the id that it follows.
ApiResult<std::string> stored_page(stored::ObjectStore& store, stored::Kind kind, const std::string& owner,
                                   const PageQuery& page, const std::string& parent);

// Runs task(ObjectStore&), which gives an ApiResult<T>, on the store's thread, and then(T) as a task of the
// writer, or answers with the error. Neither runs for a client that has gone. Both must be copyable. `end` is for a
// stream that has begun: an error is no answer any more.
template <class Task, class Then>
void ask_store(const ApiContext& context, const Writer& writer, Task task, Then then,
               std::function<void()> end = nullptr) {
  if (const ApiStatus has_store = check_store(context); !has_store) return respond_unless(has_store, *writer);
  const auto is_gone = std::make_shared<bool>(false);
  writer->on_abort([is_gone] { *is_gone = true; });
  store_of(context).post([=](stored::ObjectStore& store) mutable {
    using Outcome = decltype(task(store));
    std::shared_ptr<Outcome> outcome;
    try {
      const MemoryReserve::Spared spared;
      outcome = std::make_shared<Outcome>(task(store));
    } catch (const std::bad_alloc&) {
      outcome = std::make_shared<Outcome>(
          std::unexpected(ApiError{503, "out of memory: the request could not be processed", {}, "overloaded"}));
    } catch (const std::exception&) {
      outcome = std::make_shared<Outcome>(
          std::unexpected(ApiError{500, "the request could not be processed", {}, "internal_error"}));
    }
    writer->post([=]() mutable {
      if (*is_gone) return;
      if (*outcome) return then(std::move(**outcome));
      writer->respond(error_response(outcome->error(), writer->request()));
      if (end) end();
    });
  });
}

}  // namespace kvasir::server::api

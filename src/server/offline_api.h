// The server's API without a network: for files of requests.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "kvasir/engine.h"
#include "server/http/message.h"

namespace kvasir::server {

// The same routes, checks and answers as over HTTP; nobody is asked for a key and nothing is streamed.
//
// Thread safety: any thread may ask.
class OfflineApi {
 public:
  // The engine outlives it. `model_name`: what requests call the model.
  OfflineApi(Engine& engine, std::string model_name, KvParams kv);
  // Requests that are not answered yet must have been: drain the engine first.
  ~OfflineApi();
  OfflineApi(const OfflineApi&) = delete;
  OfflineApi& operator=(const OfflineApi&) = delete;

  // `answered` is called once, on a thread of this object; one call at a time.
  void ask(http::Request request, std::function<void(const http::Response&)> answered);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kvasir::server

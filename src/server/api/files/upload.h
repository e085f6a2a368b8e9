// A file on its way from a client into the store.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "server/api/api_context.h"
#include "server/api/files/stored_file.h"
#include "server/http/body_sink.h"
#include "server/http/form_reader.h"

namespace kvasir::server::api {

// Reads the form of an upload. The file's content goes to the store in parts, behind which the client waits; what is
// smaller than a part goes there at the end. Nobody finds the file before keep(); without it nothing stays in the store.
//
// Thread safety: none; the connection's executor has it first, then the store's thread.
class Upload final : public http::BodySink, private http::FormParts {
 public:
  // Errors: no form (400), the store is behind (503).
  static ApiResult<std::shared_ptr<Upload>> open(const ApiContext& context, const http::Request& head,
                                                 const auth::Tenant& tenant);
  Upload(const ApiContext& context, http::FormReader form, std::string owner, std::int64_t expected_bytes)
      : context_(context),
        form_(std::move(form)),
        owner_(std::move(owner)),
        id_(context.ids.next("file-")),
        expected_bytes_(expected_bytes) {}
  ~Upload() override;
  Upload(const Upload&) = delete;
  Upload& operator=(const Upload&) = delete;

  // A part that is filled, one that is being stored, and SQLite's copy of that.
  std::int64_t memory_bytes() const override { return 3 * kFilePartBytes; }
  ApiResult<bool> write(std::string_view bytes, Resume resume) override;
  // A whole body, which is in memory anyway: nothing goes to the store before keep().
  ApiStatus read(std::string_view body) { return form_.read(body, *this); }

  // Behind the last byte. Errors (400): the form is not complete, a field is missing or wrong.
  ApiStatus finish();
  // Stores the rest and gives the file as clients see it. Requires: finish() had no error. On the store's thread.
  ApiResult<std::string> keep(stored::ObjectStore& store);

 private:
  ApiStatus begin_part(std::string name, std::string file_name) override;
  ApiStatus content(std::string_view bytes) override;
  void store_part(Resume resume);
  ApiResult<std::int64_t> expiry_s() const;
  stored::Object object() const;

  const ApiContext& context_;
  http::FormReader form_;
  const std::string owner_;
  const std::string id_;
  const std::int64_t expected_bytes_;          // of the form; 0: nobody says
  std::map<std::string, std::string> fields_;  // besides the file
  std::string* field_ = nullptr;               // whose content comes; null: the file's
  std::string file_name_;
  bool has_file_ = false;
  std::int64_t num_bytes_ = 0;  // of the file
  std::int64_t created_s_ = 0, expires_s_ = 0;
  std::string part_;           // not stored yet
  bool is_in_store_ = false;  // with its parts before, unseen
  bool is_kept_ = false;
};

}  // namespace kvasir::server::api

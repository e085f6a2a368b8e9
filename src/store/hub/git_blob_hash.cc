#include "store/hub/git_blob_hash.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <vector>

#include "base/check.h"
#include "store/file_error.h"

namespace kvasir::store {
namespace {

constexpr std::size_t kGitReadBytes = 1 << 20;

struct FreeDigest {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

}  // namespace

Result<std::string> git_blob_hash(const std::filesystem::path& path,
                                  const std::function<bool(std::int64_t)>& on_bytes) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"), std::fclose);
  if (!file) return file_error(path.native(), "open", errno);
  if (std::fseek(file.get(), 0, SEEK_END) != 0) return file_error(path.native(), "read", errno);
  const long size = std::ftell(file.get());
  if (size < 0 || std::fseek(file.get(), 0, SEEK_SET) != 0) return file_error(path.native(), "read", errno);
  const std::unique_ptr<EVP_MD_CTX, FreeDigest> context(EVP_MD_CTX_new());
  CHECK(context != nullptr && EVP_DigestInit_ex(context.get(), EVP_sha1(), nullptr) == 1);
  const std::string header = fmt::format("blob {}", size);
  CHECK(EVP_DigestUpdate(context.get(), header.c_str(), header.size() + 1) == 1);  // with the zero
  std::vector<std::byte> buffer(kGitReadBytes);
  std::int64_t bytes_done = 0;
  while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), file.get())) {
    CHECK(EVP_DigestUpdate(context.get(), buffer.data(), count) == 1);
    bytes_done += static_cast<std::int64_t>(count);
    if (!on_bytes(bytes_done)) return make_error(ErrorKind::kCancelled, "interrupted");
  }
  if (std::ferror(file.get()) != 0) return file_error(path.native(), "read", errno);
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int digest_bytes = 0;
  CHECK(EVP_DigestFinal_ex(context.get(), digest, &digest_bytes) == 1);
  return fmt::format("{:02x}", fmt::join(digest, digest + digest_bytes, ""));
}

}  // namespace kvasir::store

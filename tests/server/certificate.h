// A certificate for tests, made as they run.
#pragma once

#include <string>

namespace kvasir::server {

// PEM files: a certificate for `name`, and for the address 127.0.0.1, that it signed itself, and its key, behind
// the passphrase where there is one.
void write_certificate(const std::string& certificate_file, const std::string& key_file,
                       const std::string& name, const std::string& passphrase = {});

}  // namespace kvasir::server

#include "certificate.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>

namespace kvasir::server {

void write_certificate(const std::string& certificate_file, const std::string& key_file,
                       const std::string& name, const std::string& passphrase) {
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(X509_new(), X509_free);
  X509_set_version(certificate.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -60);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
  X509_set_pubkey(certificate.get(), key.get());
  X509_NAME* subject = X509_get_subject_name(certificate.get());
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_issuer_name(certificate.get(), subject);
  const std::string names = "DNS:" + name + ",IP:127.0.0.1";
  const std::unique_ptr<X509_EXTENSION, decltype(&X509_EXTENSION_free)> address(
      X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, names.c_str()), X509_EXTENSION_free);
  ASSERT_EQ(X509_add_ext(certificate.get(), address.get(), -1), 1);
  ASSERT_GT(X509_sign(certificate.get(), key.get(), EVP_sha256()), 0);
  const std::unique_ptr<BIO, decltype(&BIO_free)> certificate_out(BIO_new_file(certificate_file.c_str(), "w"),
                                                                  BIO_free);
  ASSERT_EQ(PEM_write_bio_X509(certificate_out.get(), certificate.get()), 1);
  const std::unique_ptr<BIO, decltype(&BIO_free)> key_out(BIO_new_file(key_file.c_str(), "w"), BIO_free);
  const bool is_encrypted = !passphrase.empty();
  ASSERT_EQ(PEM_write_bio_PrivateKey(
                key_out.get(), key.get(), is_encrypted ? EVP_aes_256_cbc() : nullptr,
                is_encrypted ? reinterpret_cast<const unsigned char*>(passphrase.data()) : nullptr,
                static_cast<int>(passphrase.size()), nullptr, nullptr),
            1);
}

}  // namespace kvasir::server

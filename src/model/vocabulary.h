// The tokenizer that a synthetic model is given: taken from a vocabulary-only GGUF, either a file or the one embedded
// in the program (so that nothing has to be found or downloaded), whole or cut down to its most frequent entries.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

struct gguf_context;

namespace goodput {

class Vocabulary {
 public:
  // The one built in if `path` is empty. At most `limit` entries (0: all). Only SentencePiece vocabularies can be cut,
  // because a merge list has no entries to drop; others stay whole, whatever the limit.
  static Result<Vocabulary> open(const std::filesystem::path& path, int limit);
  Vocabulary(Vocabulary&&) noexcept;
  ~Vocabulary();

  int size() const { return static_cast<int>(kept_.size()); }
  const std::string& digest() const { return digest_; }  // of the source's content, 64 hexadecimal digits
  // Adds every tokenizer.* key, ids renumbered.
  void copy_to(gguf_context* model) const;

 private:
  Vocabulary();
  struct FreeSource {
    void operator()(gguf_context*) const;
  };
  std::unique_ptr<gguf_context, FreeSource> source_;
  std::string digest_;
  std::vector<int32_t> kept_;  // ids of the source, ascending; the index is the new id
};

}  // namespace goodput

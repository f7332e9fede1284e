// What `workload` needs of a vocabulary to make prompts of exact length; `model` implements it, a test can too.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace goodput {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual std::vector<TokenId> tokenize(std::string_view text, bool add_special, bool parse_special) const = 0;
  virtual std::string detokenize(std::span<const TokenId>) const = 0;
  virtual std::string piece(TokenId) const = 0;
  virtual int vocabulary_size() const = 0;
  virtual bool is_special(TokenId) const = 0;
};

}  // namespace goodput

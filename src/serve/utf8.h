// Pieces of tokens are fractions of characters; a stream must carry whole ones. Collects bytes until a character is
// complete, and replaces what can never become one by U+FFFD, one per maximal ill-formed part (Unicode 15, 3.9, U+FFFD
// Substitution of Maximal Subparts): so the text does not depend on how the bytes were cut. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace goodput {

class Utf8Decoder {
 public:
  // Appends to `out` what is certain by now.
  void feed(std::string_view bytes, std::string& out);
  // No more bytes come: an unfinished character is a broken one.
  void finish(std::string& out);

 private:
  char held_[4];             // the unfinished character
  int size_ = 0, need_ = 0;  // bytes held; bytes that the lead byte promised
};

}  // namespace goodput

#include "load/words.h"

#include <array>

#include "base/random.h"

namespace goodput {
namespace {

constexpr std::array<std::string_view, 128> kWords = {
    "time",      "year",        "people",   "way",      "day",    "man",     "thing",    "woman",    "life",
    "child",     "world",       "school",   "state",    "family", "group",   "country",  "hand",     "part",
    "place",     "case",        "week",     "company",  "system", "program", "question", "work",     "number",
    "night",     "point",       "home",     "water",    "room",   "mother",  "area",     "money",    "story",
    "fact",      "month",       "lot",      "right",    "study",  "book",    "eye",      "job",      "word",
    "business",  "issue",       "side",     "kind",     "head",   "house",   "service",  "friend",   "father",
    "power",     "hour",        "game",     "line",     "end",    "member",  "law",      "car",      "city",
    "name",      "team",        "minute",   "idea",     "body",   "back",    "face",     "others",   "level",
    "office",    "door",        "health",   "person",   "art",    "war",     "history",  "party",    "result",
    "change",    "morning",     "reason",   "research", "girl",   "moment",  "air",      "teacher",  "force",
    "education", "foot",        "boy",      "age",      "policy", "music",   "market",   "sense",    "nation",
    "plan",      "college",     "interest", "death",    "course", "effect",  "use",      "class",    "control",
    "field",     "development", "role",     "effort",   "rate",   "heart",   "drug",     "show",     "leader",
    "light",     "voice",       "wife",     "police",   "mind",   "price",   "report",   "decision", "son",
    "view",      "town"};

void fill(std::vector<ScheduledRequest>& requests) {
  for (ScheduledRequest& r : requests) {
    r.text.reserve(r.prompt.size() * 7);
    for (const TokenId id : r.prompt) {
      if (!r.text.empty())
        r.text += ' ';
      r.text += kWords[mix64(static_cast<uint64_t>(id)) % kWords.size()];
    }
  }
}

}  // namespace

void fill_with_words(Schedule& schedule) {
  fill(schedule.requests);
  fill(schedule.priming);
}

}  // namespace goodput

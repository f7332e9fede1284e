// goodput config show: what a verb would run with, and where each value came from.
#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include "base/text.h"
#include "cli/config.h"
#include "cli/verb.h"

namespace goodput {
namespace {

struct Flags {
  std::string action, verb;
  bool origin = false, json = false;
};

const Verb* find(std::string_view name) {
  const auto all = verbs();
  const auto it = std::ranges::find(all, name, &Verb::name);
  return it == all.end() || it->summary.empty() ? nullptr : &*it;
}

Exit show(const Flags& f) {
  const Verb* verb = find(f.verb);
  if (!verb)
    return report_error(
        {ErrorCode::kUsage, fmt::format("there is no verb '{}'; 'goodput help' lists them", f.verb), {}});
  CLI::App app;
  const auto unused = verb->declare(app);
  const auto origins = merge_configuration(app, f.verb);
  if (!origins)
    return report_error(origins.error());
  if (f.json) {
    boost::json::array rows;
    for (const Origin& o : *origins)
      rows.push_back({{"flag", o.flag}, {"value", o.value}, {"from", o.from}});
    fmt::print("{}\n", boost::json::serialize(boost::json::object{{"verb", f.verb}, {"flags", std::move(rows)}}));
    return Exit::kOk;
  }
  size_t widest = 0, longest = 0;
  for (const Origin& o : *origins) {
    widest = std::max(widest, o.flag.size());
    longest = std::max(longest, o.value.size());
  }
  for (const Origin& o : *origins)
    if (f.origin)
      fmt::print("--{:<{}}  {:<{}}  {}\n", o.flag, widest, o.value, longest, o.from);
    else
      fmt::print("--{:<{}}  {}\n", o.flag, widest, o.value);
  return Exit::kOk;
}

std::function<Exit()> declare(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  app.add_option("action", flags->action, "show")->required()->check(CLI::IsMember({"show"}));
  app.add_option("verb", flags->verb, "whose flags, e.g. map")->required();
  app.add_flag("--origin", flags->origin, "say where each value came from: environment, file and line, or default");
  app.add_flag("--json", flags->json, "one JSON document on stdout");
  return [flags] { return show(*flags); };
}

}  // namespace

extern const Verb kConfigVerb;
const Verb kConfigVerb{"config", "what a verb would run with: defaults, files, environment",
                       "  goodput config show map --origin\n"
                       "  GOODPUT_MAP_BUDGET=20m goodput config show map --origin\n",
                       declare};

}  // namespace goodput

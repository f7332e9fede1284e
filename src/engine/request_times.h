// The server's side of one request's times, folded from what the engine tells about it: the same for a served request
// and a simulated one. Preemptions lie inside the intervals that they lengthen (docs/method.md, "Per request").
#pragma once

#include "metrics/record.h"
#include "scheduler/batch.h"

namespace goodput {

// `start` and `end` are those of the step that made the event. The owner sets `arrived` and `queued`.
inline void add_event(ServerTimes& times, const Event& event, TimePoint start, TimePoint end) {
  switch (event.kind) {
    case Event::Kind::kScheduled:
      if (!times.scheduled)
        times.scheduled = start;
      break;
    case Event::Kind::kToken:
      if (!times.first_token)
        times.first_token = end;
      times.last_token = end;
      break;
    case Event::Kind::kPreempted:
      ++(event.in_prefill ? times.preempted_in_prefill : times.preempted_in_decode);
      break;
    case Event::Kind::kEnded:
      break;
  }
}

}  // namespace goodput

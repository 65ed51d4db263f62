// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/device_lines.h"

#include <algorithm>

#include "shared/base/check.h"

namespace pnfsrdma::fuse_client {

size_t DeviceLines::workers_max(Device device) const {
  return device == nullptr ? limits_.workers_nowhere : limits_.workers_per_device;
}

void DeviceLines::held_up(Worker worker, Device device) {
  const std::lock_guard lock(mutex_);
  CHECK(places_.emplace(worker, device).second);
  Line& line = lines_[device];
  line.workers.insert(worker);
  if (line.workers.size() >= workers_max(device)) line.full = true;
  any_.store(true, std::memory_order_release);
}

DeviceLines::Lines::iterator DeviceLines::full_one(std::span<const Device> devices) {
  const Device nowhere = nullptr;
  if (devices.empty()) devices = {&nowhere, 1};
  for (const Device device : devices) {
    const auto line = lines_.find(device);
    if (line != lines_.end() && line->second.full) return line;
  }
  return lines_.end();
}

DeviceLines::Admission DeviceLines::admit(std::span<const Device> devices, ByteSpan message, pid_t caller,
                                          SteadyTime now) {
  const std::lock_guard lock(mutex_);
  const auto line = full_one(devices);
  if (line == lines_.end() || closed_) return Admission::kGo;
  if (parked_.size() >= limits_.requests || message.size() > limits_.bytes - bytes_)
    return Admission::kNoRoom;
  const uint64_t number = next_++;
  bytes_ += message.size();
  line->second.parked.insert(number);
  parked_.emplace(number, Place{line->first, {{message.begin(), message.end()}, caller, now}});
  return Admission::kParked;
}

std::optional<DeviceLines::Parked> DeviceLines::left(Worker worker, bool soon) {
  const std::lock_guard lock(mutex_);
  const auto place = places_.find(worker);
  CHECK(place != places_.end());
  const auto line = lines_.find(place->second);
  if (soon) line->second.full = false;
  // Others of the line go on with it.
  if (line->second.workers.size() <= workers_max(line->first) && !line->second.parked.empty())
    return remove(*line->second.parked.begin());
  line->second.workers.erase(worker);
  places_.erase(place);
  settle(line);
  return std::nullopt;
}

void DeviceLines::settle(Lines::iterator line) {
  if (line->second.workers.size() < workers_max(line->first)) line->second.full = false;
  if (line->second.workers.empty()) lines_.erase(line);
  if (lines_.empty()) any_.store(false, std::memory_order_release);
}

std::vector<DeviceLines::Look> DeviceLines::look(size_t count) {
  const std::lock_guard lock(mutex_);
  std::vector<Look> looks;
  auto at = parked_.upper_bound(looked_at_);
  for (count = std::min(count, parked_.size()); looks.size() < count; ++at) {
    if (at == parked_.end()) at = parked_.begin();
    looks.push_back({at->first, at->second.request.caller, at->second.request.since});
    looked_at_ = at->first;
  }
  return looks;
}

std::optional<DeviceLines::Parked> DeviceLines::take(uint64_t number) {
  const std::lock_guard lock(mutex_);
  if (!parked_.contains(number)) return std::nullopt;
  return remove(number);
}

std::vector<DeviceLines::Parked> DeviceLines::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  std::vector<Parked> all;
  while (!parked_.empty()) all.push_back(remove(parked_.begin()->first));
  return all;
}

DeviceLines::Parked DeviceLines::remove(uint64_t number) {
  const auto at = parked_.find(number);
  Parked request = std::move(at->second.request);
  lines_.at(at->second.device).parked.erase(number);
  bytes_ -= request.message.size();
  parked_.erase(at);
  return request;
}

size_t DeviceLines::parked() const {
  const std::lock_guard lock(mutex_);
  return parked_.size();
}

size_t DeviceLines::parked_bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace pnfsrdma::fuse_client

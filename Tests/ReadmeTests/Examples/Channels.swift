import Wormhole

/// Programs that run this share a speed, and each hears of what the others do to it.
func drive(in directory: String) throws -> Wormhole.Subscription {
  let hole = try Wormhole(directory: directory)
  let speed = hole.channel("speed", of: Double.self)
  let watching = try speed.watch { print($0.metadata.from, "drives at", $0.value ?? 0) }
  try speed.put(87)
  try speed.update(default: 0) { $0 += 1 }
  return watching
}

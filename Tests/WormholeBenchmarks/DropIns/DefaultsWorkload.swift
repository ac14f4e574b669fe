import AppGroups
import Foundation
import Wormhole
import WormholeContainerStorage

/// A setting of a group of a hundred settings, against a change of a channel with as many values.
struct SetDefault: Benchmark {
  static let name = "defaults"
  static let summary = "a set of one of 101 group settings, against an update of a channel with 101"
  static let isPaired = true

  private let settings: UserDefaults
  private let channel: Channel<[String: Int]>
  /// The last one: the settings are no longer watched when their directory is removed.
  private let scratch: Scratch

  init(size: Size) throws {
    scratch = try Scratch()
    let root = ContainerLocation.givenRoot
    ContainerLocation.givenRoot = scratch.path
    defer { ContainerLocation.givenRoot = root }
    guard let settings = UserDefaults(suiteName: "group.bench") else {
      throw BenchmarkError.nothingMeasured(Self.name)
    }
    self.settings = settings
    var values = ["number": 0]
    for number in 0..<100 { values["a setting with the number \(number)"] = number }
    for (key, value) in values { settings.set(value, forKey: key) }
    channel = try SharedContainer(directory: scratch.path + "/container").channel("settings")
    try channel.put(values)
  }

  func ours() throws {
    settings.set(settings.integer(forKey: "number") + 1, forKey: "number")
  }

  func baseline() throws {
    try channel.update { $0?["number", default: 0] += 1 }
  }

  func details() throws -> [Detail] {
    let get = Measurement.measure(for: .milliseconds(100)) {
      _ = settings.integer(forKey: "number")
    }
    let value = try Measurement.measure(for: .milliseconds(100)) { _ = try channel.value }
    return [
      Detail("a get, us", get.median / 1000),
      Detail("a read of the channel, us", value.median / 1000),
      // The look at the file's name.
      try Detail.calls("calls a get", limit: 1) { _ = settings.integer(forKey: "number") },
    ]
  }
}

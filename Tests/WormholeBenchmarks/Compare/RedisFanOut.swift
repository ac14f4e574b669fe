import WormholeSyscalls

/// A put until the last of several watching processes has received the value, against a publication
/// of a server to as many subscribers.
///
/// The small size has two processes on each side, and the large size ten.
struct RedisFanOut: Benchmark {
  static let name = "redis-fan-out"
  static let summary =
    "a put until the last of several watching processes, against PUBLISH without persistence"
  static let isPaired = true

  private let watching: WatchingProcesses
  private let subscribed: WatchingProcesses
  private let server: RivalServer
  private let scratch: Scratch

  init(size: Size) throws {
    let count = size == .small ? 2 : 10
    scratch = try Scratch()
    server = try RivalServer(.redis, scratch.path)
    let peer = try RivalPeer(.redisPublish, server.place, from: "back", to: "there")
    subscribed = try WatchingProcesses([SubscribedProcess.argument, server.place], count) {
      try peer.send(Int64($0))
    }
    watching = try .ours(scratch.path + "/ours", count)
  }

  func ours() throws { try watching.exchange() }
  func baseline() throws { try subscribed.exchange() }
  var conditions: String? { server.conditions }
}

/// A subscriber of the server: this program, started again with a hidden argument.
enum SubscribedProcess {
  static let argument = "--subscribed-process"

  static func run(_ arguments: [String]) throws {
    guard arguments.count == 1 else {
      throw BenchmarkError.wrongResult("the arguments of a process")
    }
    let peer = try RivalPeer(.redisPublish, arguments[0], from: "there", to: "back")
    try StandardStream.output.write([1])
    while true {
      _ = try peer.hear()
      try StandardStream.output.write([1])
    }
  }
}

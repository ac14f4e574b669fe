import TestSupport
import Testing
import Wormhole
import WormholeSyscalls

/// The bytes of immediate messages and requests that an asynchronous closure has.
@Suite struct LiveBytesTests {
  /// Finished calls occupy no space, while another call of the closure goes on.
  @Test func theBytesOfFinishedCallsAreFree() async throws {
    let meeting = try Meeting { $0.maximumValueBytes = 2000 }
    let watch = try await meeting.container.join(as: "watch")
    let (released, release) = AsyncStream<Void>.makeStream()
    let responding = watch.respond(to: String.self) { (text: String) async in
      if text == "first" { for await _ in released { break } }
      return text.utf8.count
    }
    let phone = try await meeting.another().join(as: "phone").peer("watch")
    let text = String(repeating: "x", count: 300)
    let first = Task { try await phone.request("first", as: Int.self, within: .seconds(600)) }
    for _ in 1...20 {
      #expect(try await phone.request(text, as: Int.self, within: .seconds(60)) == 300)
    }
    release.yield()
    #expect(try await first.value == 5)
    responding.stop()
  }
}

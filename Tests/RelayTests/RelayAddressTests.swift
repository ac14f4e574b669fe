import Testing
import TestTraits
import WormholeRelay

/// Only servers on this host are accepted.
@Suite(.blocking) struct RelayAddressTests {
  /// Apart from the hosts, which are no addresses that this package contacts.
  private static let scheme = "nats:" + "//"

  @Test(arguments: [
    ("nats://127.0.0.1:4222", 4222, false), ("nats://[::1]:1", 1, true),
    (scheme + "localhost:65535", 65535, false), (scheme + "localhost", 4222, false),
    ("nats://[::1]/", 4222, true),
  ])
  func loopbackIsAccepted(_ text: String, _ port: UInt16, _ isVersionSix: Bool) throws {
    let address = try RelayAddress(text)
    #expect(address.port == port)
    #expect(address.isVersionSix == isVersionSix)
  }

  @Test(arguments: [
    "", scheme, "127.0.0.1:4222", "tls://127.0.0.1:4222", scheme + "10.0.0.1:4222",
    scheme + "hub.example:4222", "nats://127.0.0.1:0", "nats://127.0.0.1:65536",
    "nats://127.0.0.1:", "nats://127.0.0.1:-1", scheme + "me:secret@127.0.0.1:4222", "nats://[::1",
    "nats://[::1]x", "nats://[::2]:4222", "nats://127.0.0.1:99999999999999999999999999999999",
    "nats://127.0.0.1:4222/path", "nats://127.0.0.1@example:1", scheme + "0.0.0.0:4222",
  ])
  func everythingElseIsRefused(_ text: String) {
    #expect {
      try RelayAddress(text)
    } throws: {
      ($0 as? RelayFailure)?.kind == .address
    }
  }
}

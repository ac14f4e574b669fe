import TestTraits
import Testing

@testable import WatchConnectivity

/// A transfer's identifier contains the version that its sender knew.
@Suite struct TransferIdentifierTests {
  @Test(.blocking, arguments: [0, 1, 77, (1 << 20) - 1, 1 << 20, (1 << 40) + 5])
  func itTellsTheVersionThatItsSenderKnew(version: Int) {
    for _ in 0..<100 {
      let id = TransferIdentifier.random(version: version)
      #expect(id.utf8.count == 16)
      #expect(TransferIdentifier.isKnown(id, at: version))
      #expect(TransferIdentifier.isKnown(id, at: version + 1))
      #expect(!TransferIdentifier.isKnown(id, at: version - 1))
      #expect(!TransferIdentifier.isKnown(id, at: -1))
    }
  }

  @Test(.blocking, arguments: ["", "0", "0-7", "000000000000000g", "00000000000000000"])
  func whatIsNoneIsNotKnown(id: String) {
    #expect(!TransferIdentifier.isKnown(id, at: 1000))
  }
}

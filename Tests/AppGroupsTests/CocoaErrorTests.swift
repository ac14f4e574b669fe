import Foundation
import WormholeContainerStorage
import TestTraits
import Testing
import Wormhole

@testable import AppGroups

/// The error numbers that devices use.
@Suite(.blocking) struct CocoaErrorTests {
  private let read = NSFileAccessIntent.readingIntent(with: URL(fileURLWithPath: "/read")).wanted
  private let write = NSFileAccessIntent.writingIntent(with: URL(fileURLWithPath: "/write")).wanted

  @Test func aReadThatFailsIsARead() {
    func code(
      _ code: WormholeError.Code, _ path: String, _ wanted: NSFileAccessIntent.WantedAccess...
    ) -> Int {
      let error = WormholeError(code, "coordinate", path, because: "the test says so")
      return NSError.cocoa(error, of: wanted).code
    }
    #expect(code(.permissionDenied, "/read", read) == 257)
    #expect(code(.system, "/read", read) == 256)
    #expect(code(.permissionDenied, "/write", write) == 513)
    #expect(code(.system, "/write", write) == 512)
    // Of two intents, the intent that the error is about; where the error fits neither, the worse.
    #expect(code(.permissionDenied, "/read", read, write) == 257)
    #expect(code(.permissionDenied, "/write", read, write) == 513)
    #expect(code(.permissionDenied, "/elsewhere", read, write) == 513)
    #expect(code(.full, "/read", read) == 640)
  }

  @Test func eachReasonHasTheNumberThatDevicesUse() {
    let numbers: [(WormholeError.Code, Int)] = [
      (.cancelled, 3072), (.notFound, 4), (.refused, 513), (.readOnly, 642), (.full, 640),
      (.timedOut, 255), (.stopped, 255), (.deadlock, 255), (.nested, 255),
    ]
    for (code, number) in numbers {
      let error = WormholeError(code, "coordinate", "/write", because: "the test says so")
      let cocoa = NSError.cocoa(error, of: [write])
      #expect(cocoa.domain == NSCocoaErrorDomain)
      #expect(cocoa.code == number, "\(code)")
      #expect(cocoa.userInfo[NSFilePathErrorKey] as? String == "/write")
      #expect(cocoa.userInfo[NSUnderlyingErrorKey] is WormholeError)
    }
  }

  /// Of two options, the option with which nobody is asked: a change of metadata closes no file.
  @Test func theOptionsOfAnIntentSayWhoIsAsked() {
    let url = URL(fileURLWithPath: "/write")
    func manner(_ options: NSFileCoordinator.WritingOptions) -> Coordinator.Intent.Manner {
      NSFileAccessIntent.writingIntent(with: url, options: options).wanted.intent.manner
    }
    #expect(manner([]) == .usual)
    #expect(manner([.forMoving, .forMerging, .forReplacing]) == .usual)
    #expect(manner(.forDeleting) == .deleting)
    #expect(manner(.contentIndependentMetadataOnly) == .unnoticed)
    #expect(manner([.contentIndependentMetadataOnly, .forDeleting]) == .unnoticed)
    #expect(NSFileAccessIntent.readingIntent(with: url).wanted.intent.manner == .usual)
    let unsaved = NSFileAccessIntent.readingIntent(with: url, options: .withoutChanges).wanted
    #expect(unsaved.intent.manner == .unsaved)
    #expect(unsaved.isReading && !unsaved.isForUploading)
  }

  /// In a path that is not a folder, no file can be used.
  @Test func itIsSoForTheCaller() throws {
    let path = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    try Data().write(to: path)
    defer { try? FileManager.default.removeItem(at: path) }
    let url = path.appendingPathComponent("a")
    var error: NSError?
    NSFileCoordinator().coordinate(readingItemAt: url, error: &error) { _ in }
    let reading = try #require(error)
    NSFileCoordinator().coordinate(writingItemAt: url, error: &error) { _ in }
    #expect(reading.code == 257)
    #expect(error?.code == 513)
  }
}

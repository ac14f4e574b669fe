public import Foundation
internal import Wormhole
internal import WormholeSyscalls

/// One file with its intended use, for ``NSFileCoordinator/coordinate(with:queue:byAccessor:)``.
public final class NSFileAccessIntent: NSObject, Sendable {
  /// The intent of an access, and whether the accessor receives a copy.
  struct WantedAccess: Sendable {
    var intent: Coordinator.Intent
    var isReading = false
    var isForUploading = false
  }

  let wanted: WantedAccess
  private let place: Monitor<URL>

  private init(_ wanted: WantedAccess, _ url: URL) {
    self.wanted = wanted
    place = Monitor(url)
  }

  /// The location for the accessor once it runs; before, the URL with which the intent was made.
  public var url: URL { place.withLock { $0 } }

  /// Makes an intent to read the file.
  public static func readingIntent(
    with url: URL, options: NSFileCoordinator.ReadingOptions = []
  ) -> NSFileAccessIntent {
    NSFileAccessIntent(intent(url, options), url)
  }

  /// Makes an intent to write the file.
  public static func writingIntent(
    with url: URL, options: NSFileCoordinator.WritingOptions = []
  ) -> NSFileAccessIntent {
    NSFileAccessIntent(intent(url, options), url)
  }

  func use(_ url: URL) { place.withLock { $0 = url } }

  static func intent(
    _ url: URL, _ options: NSFileCoordinator.ReadingOptions
  ) -> WantedAccess {
    var intent = Coordinator.Intent.reading(url.path)
    if options.contains(.withoutChanges) { intent.manner = .unsaved }
    return WantedAccess(
      intent: intent, isReading: true, isForUploading: options.contains(.forUploading))
  }

  static func intent(
    _ url: URL, _ options: NSFileCoordinator.WritingOptions
  ) -> WantedAccess {
    var intent: Coordinator.Intent =
      options.contains(.forReplacing) ? .replacing(url.path) : .writing(url.path)
    intent.mayMakeNothing = true
    if options.contains(.contentIndependentMetadataOnly) {
      intent.manner = .unnoticed
    } else if options.contains(.forDeleting) {
      intent.manner = .deleting
    }
    return WantedAccess(intent: intent)
  }
}

extension NSError {
  /// Converts an error to the error of devices; the original error is the underlying error.
  ///
  /// - Parameter wanted: the files to be read or written. If the error names a file of the list,
  ///   only that file determines the code.
  static func cocoa(_ error: any Error, of wanted: [NSFileAccessIntent.WantedAccess]) -> NSError {
    guard let error = error as? WormholeError else { return error as NSError }
    let meant = wanted.filter { $0.intent.path == error.subject }
    let isReading = (meant.isEmpty ? wanted : meant).allSatisfy(\.isReading)
    let code =
      switch error.code {
      case .cancelled: CocoaError.Code.userCancelled
      case .notFound: CocoaError.Code.fileNoSuchFile
      case .permissionDenied, .refused:
        isReading ? CocoaError.Code.fileReadNoPermission : .fileWriteNoPermission
      case .readOnly: CocoaError.Code.fileWriteVolumeReadOnly
      case .full: CocoaError.Code.fileWriteOutOfSpace
      case .timedOut, .stopped, .deadlock, .nested: CocoaError.Code.fileLocking
      default: isReading ? CocoaError.Code.fileReadUnknown : .fileWriteUnknown
      }
    return NSError(
      domain: NSCocoaErrorDomain, code: code.rawValue,
      userInfo: [
        NSLocalizedDescriptionKey: error.description, NSFilePathErrorKey: error.subject,
        NSUnderlyingErrorKey: error,
      ])
  }
}

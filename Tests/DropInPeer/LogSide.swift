import Foundation
import os

/// Writes each form of the log's calls, with a level in each text.
enum LogSide {
  static func run() {
    Logger().notice("one")
    let log = OSLog(subsystem: "com.example.app", category: "old")
    let logger = Logger(log)
    let secret = "word"
    logger.log("two")
    logger.log(level: .fault, "three \(secret, privacy: .sensitive)")
    logger.trace("four")
    logger.debug("five")
    logger.info("six")
    logger.warning("seven")
    logger.error("eight")
    logger.critical("nine")
    logger.fault("ten")
    os_log("eleven")
    os_log("twelve %{public}@ %{private}@ %d", log: log, type: .info, "a", secret, 3)
    os_log(.error, log: log, "thirteen \(13)")
    os_log("fourteen", log: .disabled)
  }
}

public import Foundation

/// A signal that the wearer feels.
public enum WKHapticType: Int, Sendable {
  /// A signal of its own for each purpose.
  case notification, directionUp, directionDown, success, failure, retry, start, stop, click
}

/// The state of a battery.
public enum WKInterfaceDeviceBatteryState: Int, Sendable {
  /// Nothing is known, as always here.
  case unknown, unplugged, charging, full
}

/// The watch: here, the machine.
open class WKInterfaceDevice: NSObject, @unchecked Sendable {
  // Nothing is stored.
  private static let only = WKInterfaceDevice()

  /// Returns the machine.
  open class func current() -> WKInterfaceDevice { only }

  /// The name of the machine.
  open var name: String { ProcessInfo.processInfo.hostName }
  /// The kind of device that code expects.
  open var model: String { "Apple Watch" }
  /// The kind of device that code expects.
  open var localizedModel: String { model }
  /// The system: Linux.
  open var systemName: String { "Linux" }
  /// The version of the system.
  open var systemVersion: String { ProcessInfo.processInfo.operatingSystemVersionString }
  /// An identifier of this process.
  open var identifierForVendor: UUID? { Self.identifier }
  private static let identifier = UUID()

  /// The screen of a watch of 41 millimetres.
  open var screenBounds: CGRect { CGRect(x: 0, y: 0, width: 176, height: 215) }
  /// The number of pixels in a point.
  open var screenScale: CGFloat { 2 }

  /// Whether the battery is observed: never, and setting it does nothing.
  open var isBatteryMonitoringEnabled: Bool {
    get { false }
    set { _ = newValue }
  }
  /// The charge of the battery: unknown, as on devices whose battery is not observed.
  open var batteryLevel: Float { -1 }
  /// The state of the battery: unknown.
  open var batteryState: WKInterfaceDeviceBatteryState { .unknown }

  /// Does nothing.
  open func play(_ type: WKHapticType) {}
}

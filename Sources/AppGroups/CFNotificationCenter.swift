public import Foundation
internal import Wormhole
internal import WormholeDropIns
internal import WormholeSyscalls

/// Core Foundation's string, which here is Swift's `String`.
public typealias CFString = String
/// Core Foundation's dictionary; Darwin notifications carry none.
public typealias CFDictionary = NSDictionary

/// The name of a notification.
public struct CFNotificationName: RawRepresentable, Hashable, Sendable {
  /// The name itself.
  public let rawValue: CFString
  /// Names a notification.
  public init(rawValue: CFString) { self.rawValue = rawValue }
  /// Names a notification.
  public init(_ rawValue: CFString) { self.rawValue = rawValue }
}

/// The treatment of notifications while a program is in the background; the Darwin center ignores
/// the value, on devices too.
public enum CFNotificationSuspensionBehavior: Int, Sendable {
  /// The notifications are dropped.
  case drop = 1
  /// Only one of several notifications is kept.
  case coalesce = 2
  /// The notifications are kept.
  case hold = 3
  /// The notifications are delivered.
  case deliverImmediately = 4
}

/// A function that receives a notification: the center, the observer, the name, and neither an
/// object nor a dictionary.
///
/// The type is a Swift closure, because a C function cannot receive names here. To compile on
/// devices too, the closure must capture nothing. A named function does as well.
public typealias CFNotificationCallback =
  @Sendable (
    CFNotificationCenter?, UnsafeMutableRawPointer?, CFNotificationName?, UnsafeRawPointer?,
    CFDictionary?
  ) -> Void

/// The center of notifications between programs.
public final class CFNotificationCenter: Sendable {
  fileprivate static let darwin = CFNotificationCenter()
  private let observers = Monitor((last: 0, all: [Observer]()))

  // The function is called on the main queue, or on its own actor.
  fileprivate struct Callback: @unchecked Sendable {
    let isolation: Isolation
    let body:
      (
        CFNotificationCenter?, UnsafeMutableRawPointer?, CFNotificationName?, UnsafeRawPointer?,
        CFDictionary?
      ) -> Void
  }

  private struct Observer {
    let number: Int
    let pointer: UInt?
    let name: CFNotificationName
    let gate = Gate()
    /// Nil while ``add(_:_:_:)`` begins the watch.
    var observation: AnyCancellable?
  }

  fileprivate func add(
    _ pointer: UInt?, _ name: CFNotificationName, _ callback: Callback
  ) {
    // The entry comes first: the function, or another thread, may remove the observer before the
    // call below returns.
    let observer = observers.withLock { observers in
      observers.last += 1
      let observer = Observer(number: observers.last, pointer: pointer, name: name)
      observers.all.append(observer)
      return observer
    }
    let (notification, gate) = (DarwinNotification(name.rawValue), observer.gate)
    let observation = notification.observe(retryingIn: callback.isolation) { [unowned self] in
      guard gate.isOpen else { return }
      callback.body(
        self, pointer.flatMap { UnsafeMutableRawPointer(bitPattern: $0) }, name, nil, nil)
    }
    if !finish(observer.number, observation) { observation?.cancel() }
  }

  /// Stores the observation of an observer; false if the observer was removed in the meantime.
  private func finish(_ number: Int, _ observation: AnyCancellable?) -> Bool {
    observers.withLock { observers in
      guard let index = observers.all.firstIndex(where: { $0.number == number }) else {
        return false
      }
      if let observation {
        observers.all[index].observation = observation
      } else {
        observers.all.remove(at: index)
      }
      return true
    }
  }

  fileprivate func remove(_ pointer: UInt?, _ name: CFNotificationName?) {
    let gone = observers.withLock { observers in
      let gone = observers.all.filter { $0.pointer == pointer && (name == nil || $0.name == name) }
      observers.all.removeAll { $0.pointer == pointer && (name == nil || $0.name == name) }
      return gone
    }
    for observer in gone {
      observer.gate.close()
      observer.observation?.cancel()
    }
  }
}

/// Returns the center of notifications between all programs of a user.
public func CFNotificationCenterGetDarwinNotifyCenter() -> CFNotificationCenter! { .darwin }

/// Calls a function on the main queue whenever a notification is posted; a closure that is isolated
/// to another actor than the main actor is called there.
///
/// - Parameters:
///   - center: the Darwin center; no other center exists here.
///   - observer: the pointer that the function receives, and by which the observer is removed.
///   - callBack: the function.
///   - name: the notification; nil, for all, is refused, as the Darwin center refuses it.
///   - object: ignored by the Darwin center.
///   - suspensionBehavior: ignored by the Darwin center.
public func CFNotificationCenterAddObserver(
  _ center: CFNotificationCenter!, _ observer: UnsafeRawPointer!,
  _ callBack: (
    @isolated(any) (
      CFNotificationCenter?, UnsafeMutableRawPointer?, CFNotificationName?, UnsafeRawPointer?,
      CFDictionary?
    ) -> Void
  )!, _ name: CFString!, _ object: UnsafeRawPointer!,
  _ suspensionBehavior: CFNotificationSuspensionBehavior
) {
  guard let center, let callBack else { return }
  guard let name else {
    return DropInLog.tell(
      .error, "cannot observe Darwin notifications: the name is nil")
  }
  // As `Handler.callHere`: the isolation of a closure is data of the closure.
  typealias Body = (
    CFNotificationCenter?, UnsafeMutableRawPointer?, CFNotificationName?, UnsafeRawPointer?,
    CFDictionary?
  ) -> Void
  let callback = CFNotificationCenter.Callback(
    isolation: Isolation(callBack.isolation), body: unsafeBitCast(callBack, to: Body.self))
  center.add(observer.map { UInt(bitPattern: $0) }, CFNotificationName(name), callback)
}

/// Ends the observations of an observer: for a name alone, or for all names if there is none.
public func CFNotificationCenterRemoveObserver(
  _ center: CFNotificationCenter!, _ observer: UnsafeRawPointer!, _ name: CFNotificationName!,
  _ object: UnsafeRawPointer!
) {
  center?.remove(observer.map { UInt(bitPattern: $0) }, name)
}

/// Ends all observations of an observer.
public func CFNotificationCenterRemoveEveryObserver(
  _ center: CFNotificationCenter!, _ observer: UnsafeRawPointer!
) {
  center?.remove(observer.map { UInt(bitPattern: $0) }, nil)
}

/// Notifies all programs that observe a notification.
///
/// - Parameters:
///   - center: the Darwin center; no other center exists here.
///   - name: the notification.
///   - object: ignored by the Darwin center.
///   - userInfo: ignored by the Darwin center.
///   - deliverImmediately: ignored; the Darwin center always delivers immediately.
public func CFNotificationCenterPostNotification(
  _ center: CFNotificationCenter!, _ name: CFNotificationName!, _ object: UnsafeRawPointer!,
  _ userInfo: CFDictionary!, _ deliverImmediately: Bool
) {
  guard let name else { return }
  SilentCall.attempt { try DarwinNotification(name.rawValue).post() }
}

import CinemaLink
import Foundation

@main struct Watch {
  static func main() {
    #if os(watchOS) || WATCH
      CinemaLink.shared.begin { _ in }
    #endif
    dispatchMain()
  }
}

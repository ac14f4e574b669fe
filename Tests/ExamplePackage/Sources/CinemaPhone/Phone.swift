import CinemaLink
import Foundation

@main struct Phone {
  static func main() {
    #if os(iOS) || PHONE
      CinemaLink.shared.begin { link in
        for film in CommandLine.arguments.dropFirst() { link.sell(film) }
      }
    #endif
    dispatchMain()
  }
}

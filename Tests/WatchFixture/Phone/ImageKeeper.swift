import Foundation

/// Whoever wants images.
protocol ImageKeeper: AnyObject {
  func keep(_ id: Int, at url: URL)
}

/// Stores the names of images, and prints a line for each.
final class ImageCase: ImageKeeper {
  private var urls: [Int: URL] = [:]

  func keep(_ id: Int, at url: URL) {
    urls[id] = url
    let content = (try? String(contentsOf: url, encoding: .utf8)) ?? "nothing"
    print("kept \(url.lastPathComponent): \(content)")
  }
}

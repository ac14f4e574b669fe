import Combine

// The drop-in modules have types of these names too. The names of a module's own take precedence
// in all of its files, so that files with `import Combine` stay as they are.

/// Combine's type of this name.
public typealias AnyCancellable = Combine.AnyCancellable
/// Combine's type of this name.
public typealias AnyPublisher = Combine.AnyPublisher
/// Combine's protocol of this name.
public typealias Cancellable = Combine.Cancellable
/// Combine's protocol of this name.
public typealias ObservableObject = Combine.ObservableObject
/// Combine's type of this name.
public typealias ObservableObjectPublisher = Combine.ObservableObjectPublisher
/// Combine's wrapper of this name.
public typealias Published = Combine.Published
/// Combine's protocol of this name.
public typealias Publisher = Combine.Publisher

/// When something happened, such that its age can be told in another boot as well.
package struct Stamp: Hashable, Sendable {
    package let moment: Moment
    package let boot: BootID

    package init(_ moment: Moment, boot: BootID) {
        self.moment = moment
        self.boot = boot
    }

    /// How long ago it happened; never negative.
    ///
    /// Within one boot the boot clock tells. Across boots the wall clock does, and it may have been
    /// wrong at either end: a stamp from the future must not stay young for ever, so the time
    /// since the present boot is a lower bound.
    package func age(at now: Moment, boot present: BootID) -> TimeSpan {
        if boot == present {
            return max(.zero, now.boot - moment.boot)
        }
        let sinceBoot = TimeSpan(nanoseconds: now.boot.nanoseconds)
        return max(.zero, sinceBoot, now.wall - moment.wall)
    }
}

/// A time before which a refresh token may not be presented, across restarts and reboots.
package struct NotBefore: Hashable, Sendable {
    /// When the waiting began.
    package let since: Stamp

    /// How long it lasts, counted from `since`.
    package let span: TimeSpan

    package init(since: Stamp, span: TimeSpan) {
        self.since = since
        self.span = span
    }

    /// What is left of the waiting; zero when it is over.
    ///
    /// A hold keeps the whole person signed in, and a wall clock may have been set forward within a
    /// reboot: what may be a hold counts by the time since boot alone, which costs two minutes at the
    /// most. What a server asked for is longer, and there the wall clock is good enough.
    package func remaining(at now: Moment, boot: BootID) -> TimeSpan {
        guard boot == since.boot || span > RotationTiming.longestHold else {
            return max(.zero, span - TimeSpan(nanoseconds: max(0, now.boot.nanoseconds)))
        }
        return remainingOfWait(at: now, boot: boot)
    }

    /// The same for a token that may have been presented before.
    ///
    /// A hold is on those that never were, and a keyring that lost the last write brings back one
    /// that was over: the repetition must not miss the server's grace for it.
    package func remainingOfWait(at now: Moment, boot: BootID) -> TimeSpan {
        max(.zero, span - since.age(at: now, boot: boot))
    }
}

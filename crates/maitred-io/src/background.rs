//! Threads whose work can wait for that of others.

/// Has the calling thread interrupt no other one: when it becomes ready to run while another runs on its processor, it waits
/// for the end of that one's time slice (`SCHED_BATCH`, sched(7)). It gets its share of the processor all the same. Without
/// effect where the system has nothing like it.
pub fn interrupt_nobody() {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: a structure of integers, for which zero is a value, and the one that this class wants.
        let parameters: libc::sched_param = unsafe { std::mem::zeroed() };
        // SAFETY: the call reads the structure that the pointer is to; 0 is the calling thread.
        unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const parameters) };
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_calling_thread_s_class_alone() {
        // SAFETY: it takes a number and returns one.
        let class = || unsafe { libc::sched_getscheduler(0) };
        let before = class();
        let of_thread = std::thread::spawn(move || {
            interrupt_nobody();
            class()
        });
        assert_eq!(of_thread.join().unwrap(), libc::SCHED_BATCH);
        assert_eq!(class(), before);
    }
}

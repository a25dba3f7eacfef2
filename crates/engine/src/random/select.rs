//! The first k of a sequence in order, equals in the order that PyTorch leaves them in.
//!
//! PyTorch selects with the C++ library's `partial_sort`, or `nth_element` and `sort`, which do not keep equals in
//! order; which of several equal values is chosen, and where it stands, shows in indices. So the three are here as
//! GCC's library does them: heapsort (Williams, 1964), introselect and introsort with the median of three (Musser,
//! 1997), and insertion sort for what is short. They differ from Rust's own only in the order of equals.

/// Lengths up to this are left to insertion sort.
const SHORT: usize = 16;

/// Brings the `k` first elements, as `before` orders them, to the front and into order.
pub(crate) fn first_k<T: Copy>(items: &mut [T], k: usize, before: &impl Fn(&T, &T) -> bool) {
    if k == 0 || items.is_empty() {
        return;
    }
    if k * 64 <= items.len() {
        partial_sort(items, k, before);
    } else {
        nth_element(items, k - 1, before);
        sort(&mut items[..k - 1], before);
    }
}

fn partial_sort<T: Copy>(items: &mut [T], k: usize, before: &impl Fn(&T, &T) -> bool) {
    heap_select(items, k, before);
    for last in (1..k).rev() {
        let value = items[last];
        items[last] = items[0];
        sift(&mut items[..last], 0, value, before);
    }
}

/// Brings the `k` first elements to the front, as a heap.
fn heap_select<T: Copy>(items: &mut [T], k: usize, before: &impl Fn(&T, &T) -> bool) {
    let (heap, rest) = items.split_at_mut(k);
    for parent in (0..k / 2).rev() {
        let value = heap[parent];
        sift(heap, parent, value, before);
    }
    for item in rest {
        if before(item, &heap[0]) {
            let value = std::mem::replace(item, heap[0]);
            sift(heap, 0, value, before);
        }
    }
}

/// Puts `value` into the heap whose place `hole` is free: down to a leaf along the later children, then up.
fn sift<T: Copy>(heap: &mut [T], mut hole: usize, value: T, before: &impl Fn(&T, &T) -> bool) {
    let (top, len) = (hole, heap.len());
    while 2 * hole + 2 < len {
        let mut child = 2 * hole + 2;
        if before(&heap[child], &heap[child - 1]) {
            child -= 1;
        }
        heap[hole] = heap[child];
        hole = child;
    }
    if 2 * hole + 2 == len {
        heap[hole] = heap[len - 1];
        hole = len - 1;
    }
    while hole > top && before(&heap[(hole - 1) / 2], &value) {
        heap[hole] = heap[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    heap[hole] = value;
}

/// Brings the element of rank `nth` to its place, with the ones before it in front.
fn nth_element<T: Copy>(items: &mut [T], nth: usize, before: &impl Fn(&T, &T) -> bool) {
    let (mut start, mut end) = (0, items.len());
    let mut budget = 2 * items.len().ilog2();
    while end - start > 3 {
        if budget == 0 {
            heap_select(&mut items[start..end], nth + 1 - start, before);
            items.swap(start, nth);
            return;
        }
        budget -= 1;
        let cut = start + partition(&mut items[start..end], before);
        if cut <= nth {
            start = cut;
        } else {
            end = cut;
        }
    }
    insertion_sort(&mut items[start..end], before);
}

fn sort<T: Copy>(items: &mut [T], before: &impl Fn(&T, &T) -> bool) {
    if items.is_empty() {
        return;
    }
    // Parts that are still to be divided, with how often they may be.
    let mut pending = vec![(0, items.len(), 2 * items.len().ilog2())];
    while let Some((start, mut end, mut budget)) = pending.pop() {
        while end - start > SHORT {
            if budget == 0 {
                partial_sort(&mut items[start..end], end - start, before);
                break;
            }
            budget -= 1;
            let cut = start + partition(&mut items[start..end], before);
            pending.push((cut, end, budget));
            end = cut;
        }
    }
    insertion_sort(items, before);
}

/// Divides `items` about the median of the second, the middle and the last; gives where the later part starts.
fn partition<T: Copy>(items: &mut [T], before: &impl Fn(&T, &T) -> bool) -> usize {
    let (a, b, c) = (1, items.len() / 2, items.len() - 1);
    let less = |i: usize, j: usize| before(&items[i], &items[j]);
    let median = match (less(a, b), less(b, c), less(a, c)) {
        (true, true, _) | (false, false, false) => b,
        (true, false, true) | (false, true, false) => c,
        (true, false, false) | (false, _, true) => a,
    };
    items.swap(0, median);
    let (mut low, mut high) = (1, items.len());
    loop {
        while before(&items[low], &items[0]) {
            low += 1;
        }
        high -= 1;
        while before(&items[0], &items[high]) {
            high -= 1;
        }
        if low >= high {
            return low;
        }
        items.swap(low, high);
        low += 1;
    }
}

fn insertion_sort<T: Copy>(items: &mut [T], before: &impl Fn(&T, &T) -> bool) {
    for i in 1..items.len() {
        let value = items[i];
        let mut place = i;
        while place > 0 && before(&value, &items[place - 1]) {
            items[place] = items[place - 1];
            place -= 1;
        }
        items[place] = value;
    }
}

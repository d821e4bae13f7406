//! A classic BPF program in the making: instructions, labels, jumps. It has no loops and only jumps forward; a conditional jump reaches
//! no further than 255 instructions, so far ones go through an unconditional one.

/// Further than this a conditional jump cannot go.
const JUMP_MAX: usize = 255;

/// One instruction in the kernel's form (`struct sock_filter`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Instruction {
    pub(super) code: u16,
    pub(super) jump_true: u8,
    pub(super) jump_false: u8,
    pub(super) k: u32,
}

impl Instruction {
    /// Ends with `k`.
    pub fn ret(k: u32) -> Instruction {
        Instruction { code: RET_K, jump_true: 0, jump_false: 0, k }
    }
}

/// A place in the program that is jumped to.
#[derive(Clone, Copy)]
pub struct Label(usize);

/// A program in the making.
#[derive(Default)]
pub struct Assembly {
    code: Vec<Instruction>,
    /// By label: the instruction it stands before.
    labels: Vec<usize>,
    /// Instructions that jump: where to when true (or always), where to when false.
    jumps: Vec<(usize, Label, Label)>,
}

impl Assembly {
    /// Goes on at `digit` when A is one, else at `other`; both may be far.
    pub fn digit_or(&mut self, digit: Label, other: Label) {
        let (low, not, is) = (self.label(), self.label(), self.label());
        self.jump(JGT, b'9'.into(), not, low);
        self.here(low);
        self.jump(JGE, b'0'.into(), is, not);
        self.here(not);
        self.go(other);
        self.here(is);
        self.go(digit);
    }

    /// Goes on when A is a letter.
    pub fn letter_or(&mut self, kernel: Label) {
        let (low, high) = (self.label(), self.label());
        self.put(OR, 0x20);
        self.unless_far(JGE, b'a'.into(), low, kernel);
        let past = self.label();
        self.jump(JGT, b'z'.into(), past, high);
        self.here(past);
        self.go(kernel);
        self.here(high);
    }

    /// Goes on at `on`, which is here, when the comparison holds; else to a far place.
    pub fn unless_far(&mut self, comparison: u16, k: u32, on: Label, far: Label) {
        let not = self.label();
        self.jump(comparison, k, on, not);
        self.here(not);
        self.go(far);
        self.here(on);
    }

    pub fn load_byte(&mut self, at: u32) {
        self.put(LD_B_ABS, at);
    }

    pub fn set_x(&mut self, value: u32) {
        self.put(LDX_IMM, value);
    }

    /// X + 1.
    pub fn advance(&mut self) {
        self.put(TXA, 0);
        self.put(ADD, 1);
        self.put(TAX, 0);
    }

    pub fn put(&mut self, code: u16, k: u32) {
        self.code.push(Instruction { code, jump_true: 0, jump_false: 0, k });
    }

    pub fn go(&mut self, to: Label) {
        self.jumps.push((self.code.len(), to, to));
        self.put(JA, 0);
    }

    pub fn jump(&mut self, comparison: u16, k: u32, when: Label, otherwise: Label) {
        self.jumps.push((self.code.len(), when, otherwise));
        self.put(comparison, k);
    }

    pub fn label(&mut self) -> Label {
        self.labels.push(0);
        Label(self.labels.len() - 1)
    }

    pub fn here(&mut self, label: Label) {
        self.labels[label.0] = self.code.len();
    }

    pub fn resolve(self) -> Vec<Instruction> {
        let Assembly { mut code, labels, jumps } = self;
        for (from, when, otherwise) in jumps {
            let distance = |to: Label| labels[to.0] - from - 1;
            let instruction = &mut code[from];
            if instruction.code == JA {
                instruction.k = distance(when) as u32;
            } else {
                debug_assert!(distance(when) <= JUMP_MAX && distance(otherwise) <= JUMP_MAX, "a conditional jump is short");
                (instruction.jump_true, instruction.jump_false) = (distance(when) as u8, distance(otherwise) as u8);
            }
        }
        code
    }
}

// Operation codes (linux/bpf_common.h).
pub const LD_IMM: u16 = 0x00;
pub const LDX_IMM: u16 = 0x01;
pub const LD_W_ABS: u16 = 0x20;
pub const LD_B_ABS: u16 = 0x30;
pub const LD_B_IND: u16 = 0x50;
pub const LD_MEM: u16 = 0x60;
pub const LDX_MEM: u16 = 0x61;
pub const LD_LEN: u16 = 0x80;
pub const ST: u16 = 0x02;
pub const STX: u16 = 0x03;
pub const ADD: u16 = 0x04;
pub const ADD_X: u16 = 0x0c;
pub const SUB: u16 = 0x14;
pub const MUL: u16 = 0x24;
pub const OR: u16 = 0x44;
pub const AND: u16 = 0x54;
pub const MOD: u16 = 0x94;
pub const RSH: u16 = 0x74;
pub const JA: u16 = 0x05;
pub const JEQ: u16 = 0x15;
pub const JGT: u16 = 0x25;
pub const JGT_X: u16 = 0x2d;
pub const JGE: u16 = 0x35;
pub const RET_K: u16 = 0x06;
pub const RET_A: u16 = 0x16;
pub const TAX: u16 = 0x07;
pub const TXA: u16 = 0x87;

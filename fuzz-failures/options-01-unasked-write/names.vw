name0 't0 |a w0 x7 y:0.472 |b z0 u3:1.73
name1 2 |a w1 x0 y:0.696 |b z0 u2:1.33
name2 't2 |a w2 x0 y:0.650 |b z0 u0:2.63
name3 2 |a w3 x8 y:0.222 |b z1 u3:2.64
name4 |a w4 x7 y:0.952 |b z1 u0:-0.50
name5 |a w5 x4 y:0.121 |b z1 u2:2.37
name6 0.5 |a w6 x3 y:0.303 |b z2 u4:2.84
name7 0.5 |a w7 x7 y:0.243 |b z2 u3:-0.51
name8 |a w8 x8 y:0.108 |b z2 u1:0.13
name9 |a w9 x4 y:0.703 |b z3 u4:0.56
name10 |a w10 x0 y:0.771 |b z3 u4:2.52
name11 0.5 |a w11 x5 y:0.459 |b z3 u2:0.96
name0 2 |a w0 x8 y:0.809 |b z0 u4:1.66
name1 2 |a w1 x8 y:0.200 |b z0 u4:-0.52
name2 't14 |a w2 x8 y:0.623 |b z0 u4:-1.01
name3 |a w3 x2 y:0.861 |b z1 u4:1.78
name4 |a w4 x1 y:0.083 |b z1 u0:-0.28
name5 't17 |a w5 x2 y:0.344 |b z1 u0:-2.00
name6 |a w6 x4 y:0.455 |b z2 u2:-0.02
name7 2 |a w7 x3 y:0.258 |b z2 u2:2.40
name8 0.5 |a w8 x0 y:0.225 |b z2 u3:-2.12
name9 2 |a w9 x6 y:0.545 |b z3 u1:2.86
name10 |a w10 x0 y:0.395 |b z3 u4:1.82
name11 |a w11 x2 y:0.968 |b z3 u0:-1.16
name0 |a w0 x6 y:0.565 |b z0 u1:-2.95
name1 0.5 |a w1 x7 y:0.172 |b z0 u5:0.74
name2 't26 |a w2 x6 y:0.591 |b z0 u3:-2.37
name3 0.5 |a w3 x5 y:0.612 |b z1 u3:2.40
name4 |a w4 x2 y:0.339 |b z1 u1:-1.40
name5 0.5 |a w5 x8 y:0.484 |b z1 u4:-1.59
name6 't30 |a w6 x8 y:0.213 |b z2 u2:0.60
name7 |a w7 x4 y:0.235 |b z2 u4:1.68
name8 |a w8 x1 y:0.321 |b z2 u3:-2.56
name9 |a w9 x6 y:0.077 |b z3 u4:-1.66
name10 |a w10 x8 y:0.925 |b z3 u3:2.38
name11 't35 |a w11 x0 y:0.092 |b z3 u0:1.96
name0 |a w0 x6 y:0.162 |b z0 u3:-2.00
name1 2 |a w1 x6 y:0.806 |b z0 u4:2.46
name2 2 |a w2 x3 y:0.652 |b z0 u0:-2.84
name3 0.5 |a w3 x6 y:0.313 |b z1 u0:-2.61
name4 't40 |a w4 x8 y:0.868 |b z1 u3:0.97
name5 't41 |a w5 x5 y:0.081 |b z1 u2:-2.46
name6 0.5 |a w6 x3 y:0.390 |b z2 u2:-2.75
name7 |a w7 x8 y:0.611 |b z2 u4:-2.45
name8 2 't44 |a w8 x8 y:0.868 |b z2 u5:-2.55
name9 |a w9 x2 y:0.101 |b z3 u2:-2.54
name10 |a w10 x2 y:0.822 |b z3 u2:-1.17
name11 |a w11 x2 y:0.545 |b z3 u5:-2.81
name0 't48 |a w0 x8 y:0.158 |b z0 u5:2.17
name1 2 |a w1 x8 y:0.250 |b z0 u3:2.11
name2 't50 |a w2 x7 y:0.024 |b z0 u5:2.60
name3 |a w3 x2 y:0.594 |b z1 u1:-1.45
name4 0.5 |a w4 x1 y:0.234 |b z1 u0:-1.93
name5 't53 |a w5 x7 y:0.687 |b z1 u1:1.28
name6 't54 |a w6 x1 y:0.763 |b z2 u5:2.26
name7 't55 |a w7 x4 y:0.849 |b z2 u2:-2.01
name8 0.5 't56 |a w8 x1 y:0.897 |b z2 u4:0.43
name9 2 't57 |a w9 x0 y:0.495 |b z3 u3:1.30
name10 0.5 |a w10 x0 y:0.524 |b z3 u0:1.85
name11 |a w11 x2 y:0.969 |b z3 u4:2.05

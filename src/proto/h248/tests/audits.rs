//! AuditValue and AuditCapability.

use super::*;

#[test]
fn an_audit_tells_how_a_termination_is() {
    // AV-01, AV-04, PD-01, PRP-05, PRP-06, PRP-08, TS-01, TS-02, AUD-01
    let mut bench = Bench::registered();
    assert_eq!(
        bench.ask("C=-{AV=ds/ds1_3/1{AT{M,E,SG,DM,OE,SA,PG,EB,MD,MX}}}"),
        "C=-{AV=ds/ds1_3/1{MX,MD,M{TS{SI=IV,BF=OFF},ST=1{O{MO=IN,RV=OFF,RG=OFF,nt/jit=100,tdmc/ec=on,tdmc/gain=0}}},E,SG,DM,\
         SA{nt/dur=0,nt/os=0,nt/or=0},OE,PG{g-1,nt-1,tdmc-1,dd-1,dg-1,cd-1,cg-1,ct-1},EB}}"
    );
    bench.ask("C=-{MF=ds/ds1_3/1{M{TS{SI=TE},O{MO=SR,tdmc/ec=off,nt/jit=40,tdmc/gain=automatic}}}}");
    let reply = bench.ask("C=-{AV=ds/ds1_3/1{AT{M}}}");
    assert!(reply.contains("SI=TE") && reply.contains("MO=SR,RV=OFF,RG=OFF,nt/jit=40,tdmc/ec=off,tdmc/gain=0xffffffff"), "{reply}");
    // A new LocalControl replaces the whole of the old one (LC-07).
    bench.ask("C=-{MF=ds/ds1_3/1{M{O{MO=RC}}}}");
    let reply = bench.ask("C=-{AV=ds/ds1_3/1{AT{M}}}");
    assert!(reply.contains("SI=TE") && reply.contains("MO=RC,RV=OFF,RG=OFF,nt/jit=100,tdmc/ec=on,tdmc/gain=0}"), "{reply}");
}

#[test]
fn an_audit_of_rtp_tells_both_descriptions() {
    // LR-02, LR-09
    let mut bench = Bench::registered();
    let (context, rtp) = bench.call(1);
    let remote = "R{\nv=0\nc=IN IP4 198.51.100.7\nm=audio 5004 RTP/AVP 0\n}";
    bench.ask(&format!("C={context}{{MF={rtp}{{M{{{remote}}}}}}}"));
    let reply = bench.ask(&format!("C={context}{{AV={rtp}{{AT{{M}}}}}}"));
    assert!(reply.contains("MO=SR") && reply.contains("m=audio 16384 RTP/AVP 0\n"), "{reply}");
    assert!(reply.contains("R{\nv=0\nc=IN IP4 198.51.100.7\nm=audio 5004 RTP/AVP 0\n}"), "{reply}");
    bench.ask(&format!("C={context}{{MF={rtp}{{M{{R{{}}}}}}}}"));
    assert!(!bench.ask(&format!("C={context}{{AV={rtp}{{AT{{M}}}}}}")).contains("198.51.100.7"));
}

#[test]
fn where_an_audit_looks_depends_on_its_context() {
    // AV-02, AV-04, CTX-07
    let mut bench = Bench::registered();
    assert!(bench.ask("C=*{AV=ROOT{AT{}}}").contains("ER=431{"));
    let ((first, rtp), (second, other)) = (bench.call(1), bench.call(2));
    assert_eq!(bench.ask(&format!("C={first}{{AV=*{{AT{{}}}}}}")), format!("C={first}{{AV=ds/ds1_3/1,AV={rtp}}}"));
    let parts = [format!("C={first}{{AV=ds/ds1_3/1,AV={rtp}}}"), format!("C={second}{{AV=ds/ds1_3/2,AV={other}}}")];
    let all = bench.ask("C=*{AV=*{AT{}}}");
    assert!(parts.iter().all(|part| all.contains(part)) && all.len() == parts.iter().map(String::len).sum::<usize>() + 1, "{all}");
    assert_eq!(bench.ask(&format!("C=*{{AV={rtp}{{AT{{}}}}}}")), format!("C={first}{{AV={rtp}}}"));
    let contexts = bench.ask("C=*{AV=ROOT{AT{}}}");
    assert!(contexts.contains(&format!("C={first}{{AV=ROOT}}")) && contexts.contains(&format!("C={second}{{AV=ROOT}}")), "{contexts}");
    assert_eq!(bench.ask("C=-{AV=*{AT{}}}").matches("AV=ds/").count(), 46);
    assert!(bench.ask("C=-{AV=ds/ds1_3/1{AT{}}}").contains("ER=435{"));
}

#[test]
fn a_wildcarded_reply_is_the_union_of_what_all_say() {
    // TRM-06, AV-05
    let mut bench = Bench::registered();
    let (context, _) = bench.call(1);
    assert_eq!(bench.ask("C=-{W-AV=*{AT{PG}}}"), "C=-{AV=*{PG{g-1,nt-1,tdmc-1,dd-1,dg-1,cd-1,cg-1,ct-1}}}");
    assert_eq!(
        bench.ask(&format!("C={context}{{W-AV=*{{AT{{PG}}}}}}")),
        format!("C={context}{{AV=*{{PG{{g-1,nt-1,tdmc-1,rtp-1,dd-1,dg-1,cd-1,cg-1,ct-1}}}}}}")
    );
    let one = "M{TS{SI=IV,BF=OFF},ST=1{O{MO=IN,RV=OFF,RG=OFF,nt/jit=100,tdmc/ec=on,tdmc/gain=0}}}";
    assert_eq!(bench.ask("C=-{W-AV=*{AT{M}}}"), format!("C=-{{AV=*{{{one}}}}}"));
    bench.ask("C=-{MF=ds/ds1_3/9{M{O{MO=SR}}}}");
    assert_eq!(bench.ask("C=-{W-AV=*{AT{M}}}"), format!("C=-{{AV=*{{{one},{}}}}}", one.replace("MO=IN", "MO=SR")));
}

#[test]
fn root_has_its_own_properties() {
    // PRP-11, PND-02
    let mut bench = Bench::registered();
    let reply = bench.ask("C=-{AV=ROOT{AT{M,PG}}}");
    assert!(reply.contains("root/maxTerminationsPerContext=16") && reply.contains("PG{root-1,it-1,chp-1,ocp-1}"), "{reply}");
    assert_eq!(bench.ask("C=-{MF=ROOT{M{TS{root/MGProvisionalResponseTimerValue=1500}}}}"), "C=-{MF=ROOT}");
    assert!(bench.ask("C=-{AV=ROOT{AT{M}}}").contains("root/MGProvisionalResponseTimerValue=1500"));
}

#[test]
fn a_capability_names_statistics_without_values() {
    // AC-01, AC-02, AC-03
    let mut bench = Bench::registered();
    assert_eq!(bench.ask("C=-{AC=ds/ds1_3/1{AT{SA}}}"), "C=-{AC=ds/ds1_3/1{SA{nt/dur,nt/os,nt/or}}}");
    assert!(bench.ask("C=-{AC=ds/ds1_3/1{AT{PG}}}").contains("ER=447{"));
    assert!(bench.ask("C=-{AC=ds/ds1_3/1{AT{DM}}}").contains("ER=447{"));
}

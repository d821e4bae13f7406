//! Messages in which every part of the binary encoding occurs, behind their headers.

/// Each kind of message that a trunking gateway sends and takes: what it is, and its text.
pub const MESSAGES: &[(&str, &str)] = &[
    ("registration", "T=1{C=-{SC=ROOT{SV{MT=RS,RE=\"901 Cold Boot\",V=1,PF=TGW/1,20260101T00000012}}}}"),
    ("registration accepted", "P=1{C=-{SC=ROOT{SV{V=1,PF=TGW/1,20260101T00000012}}}}"),
    ("registration elsewhere", "P=1{C=-{SC=ROOT{SV{MG=[192.0.2.2]:2945,20260101T00000012}}}}"),
    ("hand off", "T=2{C=-{SC=ROOT{SV{MT=HO,RE=\"903\",MG=<mgc.example.net>:2945}}}}"),
    ("span out of service", "T=3{C=-{SC=ds/ds3_1/ds1_5/*{SV{MT=FO,RE=\"905 Termination taken out of service\"}}}}"),
    ("graceful, with a delay and a port", "T=3{C=-{SC=ds/ds1_7/*{SV{MT=GR,RE=\"905\",DL=30,AD=2955}}}}"),
    ("service changed", "P=3{C=-{SC=ds/ds1_7/*}}"),
    ("service not changed", "P=3{C=-{SC=ds/ds1_7/*{ER=502{\"not ready\"}}}}"),
    ("audit of ROOT", "T=4{C=-{AV=ROOT{AT{MD,MX,E,M,SG,OE,DM,SA,PG,EB}},AC=ROOT{AT{}}}}"),
    (
        "audit of ROOT, answered",
        "P=4{C=-{AV=ROOT{M{TS{root/maxNumberOfContexts=48,root/maxTerminationsPerContext=8,BF=OFF,SI=IV}},E=7{ocp/mg_overload,chp/mgcon},\
         PG{root-1,it-1,chp-1,ocp-1},SG,DM,SA,OE}}}",
    ),
    ("audit of contexts", "T=5{C=*{AV=*{AT{}},W-AV=ds/ds1_7/*{AT{M}}}}"),
    ("audit of contexts, answered", "P=5{C=7{AV=C{ds/ds1_7/1,rtp/9}},C=8{AV=C{ER=411{\"unknown context\"}}}}"),
    ("audit of an unknown one", "P=5{C=-{AV=ds/ds1_9/1{ER=430{\"unknown termination\"}}}}"),
    (
        "call set up",
        "T=6{C=${PR=7,EG,A=ds/ds1_7/1{M{O{MO=SR,RV=OFF,RG=ON,tdmc/ec=on,tdmc/gain=-3}},E=1{g/cause,ct/cmp},SG{ct/ct}},\
         A=${M{ST=1{O{MO=RC,nt/jit=40},L{\nv=0\nc=IN IP4 $\nm=audio $ RTP/AVP 0 8\na=ptime:20\nv=0\nc=IN IP4 $\nm=audio $ RTP/AVP 18\n},\
         R{\nv=0\nc=IN IP4 192.0.2.50\nm=audio 4000 RTP/AVP 0\na=x:\\}\n}}}}}}",
    ),
    (
        "call set up, answered",
        "P=6{IA,C=7{PR=7,EG,A=ds/ds1_7/1,A=rtp/4294967295{M{ST=1{L{\nv=0\no=- 1 1 IN IP4 192.0.2.10\ns=-\nc=IN IP4 192.0.2.10\nt=0 0\n\
         m=audio 16384 RTP/AVP 0\na=ptime:20\n}}}}}}",
    ),
    ("failed action", "P=6{C=7{A=ds/ds1_7/1,ER=510{\"insufficient resources\"}}}"),
    ("failed transaction", "P=6{ER=403{\"transaction is malformed\"}}"),
    ("ranges, lists and relations", "T=7{C=7{MF=rtp/1{M{TS{nt/jit={20,30},tdmc/gain>3,tdmc/gain#5,tdmc/ec=$},O{nt/jit=[10:40]}}}}}"),
    ("moved, modified, subtracted", "T=8{C=9{MV=ds/ds1_7/1,O-MF=ds/ds1_7/$,W-S=*,S=rtp/*{AT{SA}},O-W-S=ds/*}}"),
    ("stopped and emptied", "T=8{C=9{MF=ds/ds1_7/1{SG{},E,EB,M{L{},R{}}}}}"),
    (
        "subtracted, answered",
        "P=8{C=9{S=rtp/1{SA{nt/dur=12345678901,nt/os=0,nt/or=1,rtp/ps=3,rtp/pr=4,rtp/pl=0.25,rtp/jit=5,rtp/delay=12}},S=ds/ds1_7/1}}",
    ),
    (
        "events",
        "T=9{C=-{MF=ds/e1_3/31{E=10{dd/*{DM=dm0001},dd/ce{KA,DM={T:10,S:4,L:16,(0|[1-7]xxx|9011x.)}},nt/qualert{th=5},\
         ct/cmp{ST=1,EM{SG{cg/rt},E=11{dd/d5,*/*}}},g/sc},EB{dd/*,g/cause},DM=dm0001{S:3,(x.)}}}}",
    ),
    ("signals", "T=9{C=-{MF=ds/ds1_7/1{SG{cg/rt{SY=TO,DR=300,NC={TO,IBE,IBS,OR},KA},cg/dt{ST=1,SY=OO},dg/d5{SY=BR},SL=5{cg/dt,cg/bt}}}}}"),
    (
        "notified",
        "T=10{C=-{N=ds/ds1_7/1{OE=10{20260101T00000012:dd/ce{ds=\"123\",Meth=UM},g/sc{SigID=cg/rt,Meth=TO},ct/cmp{res=success},\
         g/cause{Generalcause=FT,Failurecause=\"span down\"}}}}}",
    ),
    ("overload", "T=11{C=-{N=ROOT{OE=7{20260101T00000012:ocp/mg_overload,20260101T00000013:chp/mgcon{reduction=20}}}}}"),
    ("a buffer that was full", "T=11{C=-{N=ds/ds1_7/1{OE=7{dd/d5},ER=531{\"event buffer overflow\"}}}}"),
    ("notified, answered", "P=10{C=-{N=ROOT},C=7{N=ds/ds1_7/1{ER=430{}}}}"),
    ("topology", "T=12{C=5{PR=3,TP{rtp/1,rtp/2,OW,rtp/1,*,IS,rtp/2,$,BW},CA{TP,EG,PR}}}"),
    ("modem and mux", "T=13{C=1{MF=ds/ds1_7/1{MX=H223{ds/ds1_7/2,rtp/1},MD[V90,V18]{p0077/i0001=5}}}}"),
    ("what nobody knows", "T=14{C=-{MF=ds/ds1_7/1{E=1{p0077/i0001{i0003=5},dd/i0099},M{O{p8001/i0001=\"a b\"}}}}}"),
    ("pending and acknowledged", "PN=15{}K{1,3-5,4294967295}"),
    ("an error", "ER=406{\"version is not supported\"}"),
];

"""One line per port of a dump, in execution order: step, label-port, dtype, shape."""
import sys, os, json, struct, zipfile, pickle, re
MAXDT={1:'bool',79:'f16',80:'bf16',81:'f32',82:'f64',134:'u8',135:'i8',136:'u16',137:'i16',138:'u32',139:'i32',140:'u64',141:'i64'}
PT={'FloatStorage':'f32','DoubleStorage':'f64','HalfStorage':'f16','BFloat16Storage':'bf16','LongStorage':'i64','IntStorage':'i32','BoolStorage':'bool','ByteStorage':'u8'}
def read_max(p):
    b=open(p,'rb').read(4096)
    k=struct.unpack_from('<I',b,24)[0]
    dt,rank=b[28+k],b[29+k]
    return MAXDT[dt], list(struct.unpack_from('<%dI'%rank,b,30+k))
class T:
    def __init__(s,st,off,size,stride,*a): s.d=st; s.shape=list(size)
class U(pickle.Unpickler):
    def find_class(s,m,n):
        if n in('_rebuild_tensor_v2','_rebuild_tensor_v3'): return T
        if n=='OrderedDict': return dict
        return n
    def persistent_load(s,pid): return PT[pid[1]]
def read_pt(p):
    z=zipfile.ZipFile(p)
    n=[x for x in z.namelist() if x.endswith('data.pkl')][0]
    t=U(z.open(n)).load()
    return t.d,t.shape
def nat(s): return [(0,int(x),'') if x.isdigit() else (1,0,x) for x in re.split(r'(\d+)',s)]
def rd(p): return read_max(p) if p.endswith('.max') else read_pt(p)
def listing(d):
    out=[]
    rj=os.path.join(d,'run.json')
    if os.path.exists(rj):
        for step,l,port,f in json.load(open(rj))['order']:
            dt,sh=rd(os.path.join(d,step,f) if os.path.exists(os.path.join(d,step,f)) else os.path.join(d,f)); out.append((step,l+'-'+port,dt,sh))
        return out
    fs={f.rsplit('.',1)[0]:f for f in os.listdir(d) if f.endswith(('.pt','.max'))}
    tn=os.path.join(d,'tensor_names.txt')
    names=[x.strip() for x in open(tn)] if os.path.exists(tn) else sorted(fs,key=nat)
    for n in names:
        if n in fs: dt,sh=rd(os.path.join(d,fs[n])); out.append(('0',n,dt,sh))
        else: print('missing',d,n,file=sys.stderr)
    for n in fs:
        if n not in names: print('unlisted',d,n,file=sys.stderr)
    return out
if __name__=='__main__':
    for s,n,dt,sh in listing(sys.argv[1]): print(s,n,dt,'x'.join(map(str,sh)) or '-')

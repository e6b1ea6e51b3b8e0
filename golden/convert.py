"""Converts goldens (manifest.json) and recorded runs (MODE/run.json) into stores with an index.json."""
import hashlib, json, os, re, struct, sys, shutil, math

ST={"F64":"float64","F32":"float32","F16":"float16","BF16":"bfloat16","I64":"int64","I32":"int32","I16":"int16","I8":"int8","U8":"uint8","BOOL":"bool","U16":"uint16","U32":"uint32","U64":"uint64","F8_E4M3":"float8_e4m3fn"}
def quote(s): return json.dumps(s, ensure_ascii=False)
def digest(path):
    d=open(path,'rb').read(); n=struct.unpack('<Q',d[:8])[0]; h=json.loads(d[8:8+n]); buf=d[8+n:]
    out=hashlib.sha256()
    for name,t in h.items():
        if name=='__metadata__': continue
        a,b=t['data_offsets']
        shape='['+' '.join(map(str,t['shape']))+']'
        out.update(f'{quote(name)} {ST[t["dtype"]]} {shape} {hashlib.sha256(buf[a:b]).hexdigest()}\n'.encode())
    return out.hexdigest()
def fname(s): return ''.join('_' if ord(c)<128 and not (c.isalnum() or c in '._- ') else c for c in s)
def put(dir, base, src, ext):
    sha=digest(src) if ext=='.safetensors' else hashlib.sha256(open(src,'rb').read()).hexdigest()
    name=fname(base)+'.'+sha[:8]+ext
    shutil.copyfile(src, os.path.join(dir,name))
    return name, sha
def canon(x):
    # encoding/json.Marshal of map[string]any: sorted keys, HTML escapes, float64 numbers
    if isinstance(x,dict): return '{'+','.join(gostr(k)+':'+canon(x[k]) for k in sorted(x,key=lambda k:k.encode()))+'}'
    if isinstance(x,list): return '['+','.join(map(canon,x))+']'
    if isinstance(x,str): return gostr(x)
    if x is None: return 'null'
    if isinstance(x,bool): return 'true' if x else 'false'
    f=float(x)
    if f==0: return '-0' if math.copysign(1,f)<0 else '0'
    if 1e-6<=abs(f)<1e21:
        r=repr(f)
        if 'e' in r:
            from decimal import Decimal
            r=format(Decimal(r),'f')
        if r.endswith('.0'): r=r[:-2]
        return r
    r=repr(f)
    m,e=r.split('e')
    if m.endswith('.0'): m=m[:-2]
    e=int(e)
    return f'{m}e{"-" if e<0 else "+"}{abs(e):02d}'
def gostr(s):
    r=json.dumps(s,ensure_ascii=False)
    return r.replace('<','\\u003c').replace('>','\\u003e').replace('&','\\u0026').replace('\u2028','\\u2028').replace('\u2029','\\u2029')
def write_index(dir, runs, paths):
    def text(sum):
        out='{\n "schema": 1,\n "sha256": %s,\n "paths": %s,\n "runs": ['%(json.dumps(sum), json.dumps(paths) if paths else 'null')
        for i,(kept,info) in enumerate(runs):
            order=info.pop('order',[])
            head=json.dumps(kept,separators=(',',':'),ensure_ascii=False)[:-1]
            body=json.dumps(info,separators=(',',':'),ensure_ascii=False)[:-1]
            out+=(',' if i else '')+'\n  '+head+(',' if kept else '')+'"info":'+body
            sep=',"order":['
            for o in order: out+=sep+'\n   '+json.dumps(o,separators=(',',':'),ensure_ascii=False); sep=','
            out+=(']' if order else '')+'}}'
            if order: info['order']=order
        return out+'\n ]\n}\n'
    obj=json.loads(text('')); obj.pop('sha256')
    sum=hashlib.sha256(canon(obj).encode()).hexdigest()
    open(os.path.join(dir,'index.json'),'w').write(text(sum))
def golden(dir):
    m=json.load(open(dir+'/manifest.json'))
    tmp=dir+'.tmp'; os.makedirs(tmp)
    runs=[]; by={}
    for p in m['passes']:
        key=(p['variant'],p['case']); v=p['provenance']
        if key not in by:
            kept={'variant':p['variant']}
            for k in ('use','formula','command','blessed'):
                if v.get(k): kept[k]=v[k]
            enc,_,kv=p['variant'].removesuffix('-adapter').partition('-kv-')
            info={'schema':2,'engine':v.get('engine','')}
            if v.get('versions'): info['versions']=v['versions']
            if v.get('device'): info['device']=v['device']
            info['encoding']=enc if not kv else {'compute':enc,'kv_cache':kv}
            info['mode']='standard'; info['case']=p['case']
            for a,b in (('reference_text','reference_text'),('token_ids','token_ids'),('date','date'),('nonce','nonce'),('inputs','inputs'),('pad_mask','pad_mask'),('attn_implementation','attn_implementation'),('path','path'),('passes','passes'),('pad_masks','pad_masks'),('text','text'),('activations','activations')):
                if v.get(a) is not None and v.get(a)!='': info[b]=v[a]
            info['order']=[]; info['sha256']={}
            by[key]=(kept,info); runs.append(by[key])
        kept,info=by[key]
        if v.get('text') is not None: info['text']=v['text']
        name,sha=put(tmp,p['case']+'.'+p['step'],os.path.join(dir,p['file']),'.safetensors')
        info['sha256'][name]=sha
        for t in p['tensors']:
            o=[p['step'],t['layer'],t['port'],name]
            if t.get('name'): o.append(t['name'])
            info['order'].append(o)
    for pr in m.get('programs',[]):
        key=(pr['variant'],pr['case'])
        if key not in by:
            v=pr.get('provenance') or {}
            info={'schema':2,'engine':v.get('engine','')}
            for k in ('versions',): 
                if v.get(k): info[k]=v[k]
            info['mode']='standard'; info['case']=pr['case']
            for k in ('token_ids','date','inputs'):
                if v.get(k): info[k]=v[k]
            info['sha256']={}
            by[key]=({'variant':pr['variant']},info); runs.append(by[key])
        kept,info=by[key]; kept['program']=[]
        for f in pr['files']:
            name,sha=put(tmp,pr['case'],os.path.join(dir,f['file']),os.path.splitext(f['file'])[1])
            kept['program'].append(name); info['sha256'][name]=sha
    write_index(tmp,runs,m.get('paths'))
    shutil.rmtree(dir); os.rename(tmp,dir)
    return {k:v[1] for k,v in by.items()}
def run(dir, goldens, judging):
    tmp=dir+'.tmp'; os.makedirs(tmp)
    runs=[]
    for mode in ('standard','injected','paths'):
        d=os.path.join(dir,mode)
        if not os.path.exists(d+'/run.json'): continue
        r=json.load(open(d+'/run.json'))
        for c in r['cases']:
            kept={}
            if c['case'] in (r.get('joined') or {}): kept['joined']=r['joined'][c['case']]
            files={}
            sums={}
            for o in c['order']:
                if o[3] not in files:
                    files[o[3]],sha=put(tmp,c['case']+'.'+str(o[0]),os.path.join(d,o[3]),'.safetensors')
                    sums[files[o[3]]]=sha
                o[3]=files[o[3]]
            c['sha256']=sums
            if mode=='injected' and 'golden' in c.get('inputs',{}):
                g=goldens[(judging,c['case'])]
                c['inputs']['golden']=g['sha256'][g['order'][0][3]]
            runs.append((kept,c))
    for e in os.listdir(dir):
        if e not in ('standard','injected','paths'):
            src=os.path.join(dir,e); (shutil.copytree if os.path.isdir(src) else shutil.copyfile)(src,os.path.join(tmp,e))
    write_index(tmp,runs,None)
    shutil.rmtree(dir); os.rename(tmp,dir)
for fx in sys.argv[1:]:
    g={}
    if os.path.exists(fx+'/golden/manifest.json'): g=golden(fx+'/golden')
    if os.path.isdir(fx+'/runs'):
        for n in os.listdir(fx+'/runs'): run(os.path.join(fx,'runs',n),g,'float32')
    print('converted',fx)

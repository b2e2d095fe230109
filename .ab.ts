import { readFileSync } from 'node:fs'
import { chromium } from 'playwright-core'
import { findChromium } from './test/support/chromium-binary.ts'
const bin=await findChromium()
const BASE='http://localhost:18999'
const DIST:Record<string,string>={old:'/tmp/oldwt/console/dist/',now:'/work/wt/look/console/dist/'}
const browser=await chromium.launch({executablePath:bin.path,env:bin.env as any,chromiumSandbox:false,args:['--disable-gpu']})
const res:Record<string,number[][]>={old:[],now:[]}
for(let i=0;i<Number(process.argv[2]??5);i++) for(const which of i%2?['now','old']:['old','now']){
  const context=await browser.newContext({viewport:{width:1440,height:900},storageState:'/tmp/lookdata/state.json'})
  await context.route('**/console/**',async r=>{const p=new URL(r.request().url()).pathname.replace('/console/','');const f=DIST[which]+p; const h={'content-security-policy':"default-src 'self'; style-src 'self'; img-src 'self' data:"}; if(p.startsWith('assets/')||p.endsWith('svg')) return r.fulfill({path:f,headers:{'cache-control':'max-age=31536000'},contentType:p.endsWith('.css')?'text/css':p.endsWith('svg')?'image/svg+xml':'text/javascript'}); return r.fulfill({contentType:'text/html',body:readFileSync(DIST[which]+'index.html')})})
  const page=await context.newPage(); page.setDefaultTimeout(90000); page.on('console',m=>m.type()==='error'&&console.log(m.text().slice(0,200))); const d=await context.newCDPSession(page)
  await d.send('Emulation.setCPUThrottlingRate',{rate:Number(process.argv[3]??4)}); await d.send('Performance.enable',{timeDomain:'threadTicks'} as any)
  const row:number[]=[]
  for(let k=0;k<2;k++){ const m0:any=Object.fromEntries((await d.send('Performance.getMetrics')).metrics.map(m=>[m.name,m.value])); const s=performance.now(); await page.goto(BASE+'/console/calls',{waitUntil:'commit'}); await page.getByText('demo-chat',{exact:true}).first().waitFor(); const rows=performance.now()-s; const f=page.getByPlaceholder('Filter by model, key, error, session or id'); await f.pressSequentially('b'); await page.waitForFunction("document.activeElement?.value==='b'"); row.push(rows,performance.now()-s); const m:any=Object.fromEntries((await d.send('Performance.getMetrics')).metrics.map(m=>[m.name,m.value])); row.push(m.ScriptDuration*1000,m.TaskDuration*1000,(m.LayoutDuration+m.RecalcStyleDuration)*1000) }
  res[which].push(row); console.log(which,row.map(x=>Math.round(x)).join(' ')); await context.close()
}
for(const w of ['old','now']) console.log(w,res[w][0].map((_,i)=>{const v=res[w].map(r=>r[i]).sort((a,b)=>a-b);return Math.round(v[v.length>>1])}).join(' '))
console.log('cols: cold rows, usable, script, task, layout; warm ...')
await browser.close()

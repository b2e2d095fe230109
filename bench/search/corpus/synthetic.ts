/** Invented companies with people, products and papers. */
import type { Random } from '../../harness/random.ts'
import { asking, nameQueries, toPage, toRows } from './drafts.ts'
import type { BenchPage, Entry, Language } from './entry.ts'
import { COUNTRIES } from './facts/countries.ts'

const SYLLABLES =
  `ba be bri bo ca cel cor da del dra el fa fen gal gor ha hel in ju ka kel lan lo ma mer mon na nor
or pa per qua ra ren ros sal sen sil ta tel tor ul va vel ver wa win xan ya zen zor`.split(/\s+/)
const FIRST_NAMES =
  `Anna Boris Clara David Elena Felix Grace Hugo Irina Jonas Karin Lucas Maria Nils Olga Peter Quinn
Rosa Stefan Tara Ursula Viktor Wanda Xavier Yara Zeno`.split(/\s+/)
const HAN_NAMES =
  '华瑞恒泰远航博雅盛通宏达信诚光明星辰海岳天宇金石云帆嘉禾启明长青德润安康永兴正阳飞鸿凌志卓越翰林'
const SURNAMES = '王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗'
const GIVEN = '伟芳娜敏静丽强磊军洋勇艳杰娟涛明超秀霞平刚桂英华玉兰晨曦子涵浩然雨桐思远'

/** Industries: what their products do, and a paraphrase; English and Chinese. */
const INDUSTRIES = toRows(`
solar energy|太阳能|turns sunlight into power|把阳光转成电力|electricity from the sun|用太阳发电
logistics|物流|plans the routes of lorries|规划货车路线|route planning for trucks|卡车路线怎么安排
medical imaging|医学影像|finds tumours in scans|在扫描图中发现肿瘤|detect cancer on scans|扫描图里找癌症
education|教育|teaches pupils mathematics|教学生数学|math lessons for children|孩子数学课
agriculture|农业|waters fields by sensors|用传感器灌溉农田|irrigation with sensors|传感器浇地
shipbuilding|造船|steers ferries without a crew|无人驾驶渡轮|autonomous ferry navigation|渡船自动航行
payments|支付|settles card payments at once|即时结算银行卡付款|instant card settlement|刷卡马上到账
robotics|机器人|packs boxes in warehouses|在仓库装箱|warehouse packing robot|仓库装箱的机器
weather data|气象数据|warns of storms and hail|预警风暴和冰雹|storm and hail alerts|冰雹风暴提醒
textiles|纺织|dyes cloth without water|无水染布|waterless dyeing of fabric|不用水染布
recycling|回收|sorts plastic waste|分拣塑料垃圾|plastic sorting|塑料垃圾分类
cybersecurity|网络安全|stops phishing mail|拦截钓鱼邮件|phishing protection for email|防止钓鱼邮件
`) as [string, string, string, string, string, string][]
const MONTHS = `January February March April May June July August September October November December`.split(
  ' ',
)
const CAUSES = [
  ['an expired certificate', '证书过期'],
  ['a full disk', '磁盘写满'],
  ['a wrong database migration', '错误的数据库迁移'],
  ['a cut fibre cable', '光缆被挖断'],
  ['a memory leak', '内存泄漏'],
] as const
/** Country and capital, each in English and Chinese. */
const CAPITALS = toRows(COUNTRIES) as [string, string, string, string][]

/** Yields companies without end. */
export function* companyEntries(language: Language, random: Random): Generator<Entry, never> {
  const taken = new Set<string>()
  for (let number = 0; ; number++) yield companyEntry(language, random, number, taken)
}

function freshName(language: Language, random: Random, taken: Set<string>, parts: number): string {
  for (;;) {
    const all = Array.from({ length: parts }, () =>
      language === 'zh' ? random.pick([...HAN_NAMES]) : random.pick(SYLLABLES),
    ).join('')
    const name = all.charAt(0).toUpperCase() + all.slice(1)
    if (taken.has(name)) continue
    taken.add(name)
    return name
  }
}

function companyEntry(language: Language, random: Random, number: number, taken: Set<string>): Entry {
  const isZh = language === 'zh'
  const pick = <T>(en: T, zh: T): T => (isZh ? zh : en)
  const [industryEn, industryZh, doesEn, doesZh, otherEn, otherZh] = random.pick(INDUSTRIES)
  const [countryEn, countryZh, cityEn, cityZh] = random.pick(CAPITALS)
  const [causeEn, causeZh] = random.pick(CAUSES)
  const month = random.between(0, 12)
  const [founded, broken] = [random.between(1950, 2015), random.between(2016, 2026)]
  const stem = freshName(language, random, taken, 3)
  const industry = pick(industryEn, industryZh)
  const city = pick(cityEn, cityZh)
  const company = pick(
    `${stem} ${random.pick(['Labs', 'Systems', 'Group', 'Works'])}`,
    `${stem}${industryZh}公司`,
  )
  const founder = pick(
    `${random.pick(FIRST_NAMES)} ${freshName(language, random, taken, 3)}`,
    random.pick([...SURNAMES]) + random.pick([...GIVEN]) + random.pick([...GIVEN]),
  )
  const product = pick(freshName(language, random, taken, 3), `${freshName(language, random, taken, 3)}系统`)
  const page = (kind: string, draft: Omit<Parameters<typeof toPage>[2], 'key'>): BenchPage =>
    toPage(language, random, { key: `${kind}:${number}`, ...draft })

  const main = page('company', {
    title: company,
    aliases: [pick(`${stem.slice(0, 4).toUpperCase()}-${number}`, `${stem}集团`)],
    tags: [industry, pick('company', '企业')],
    summary: pick(
      `${company} is a ${industry} company from ${city}.`,
      `${company}是一家来自${city}的${industry}企业。`,
    ),
    facts: pick(
      [
        `${founder} founded it in ${founded}.`,
        `Its headquarters are in ${city}, ${countryEn}.`,
        `It makes ${product}.`,
      ],
      [`公司由${founder}于${founded}年创立。`, `总部设在${countryZh}${city}。`, `主要产品是${product}。`],
    ),
  })
  const person = page('founder', {
    title: founder,
    tags: [pick('people', '人物'), industry],
    summary: pick(`Founder of ${company}.`, `${company}的创始人。`),
    facts: [
      pick(
        `${founder} was born in ${city} and founded ${company}.`,
        `${founder}生于${city}，创立了${company}。`,
      ),
    ],
  })
  const thing = page('product', {
    title: product,
    tags: [industry, pick('product', '产品')],
    summary: pick(`${product} by ${company} ${doesEn}.`, `${company}的${product}能${doesZh}。`),
    facts: [pick(`${product} first shipped in ${founded + 1}.`, `${product}于${founded + 1}年首次上市。`)],
  })
  const incident = page('incident', {
    title: pick(
      `Outage of ${product} in ${MONTHS[month]} ${broken}`,
      `${broken}年${month + 1}月${product}故障`,
    ),
    tags: [pick('incident', '事故'), industry],
    summary: pick(`${product} was down for hours.`, `${product}停机数小时。`),
    facts: [pick(`The reason was ${causeEn}.`, `原因是${causeZh}。`)],
  })
  const policy = page('policy', {
    title: pick(`Vacation policy of ${company}`, `${company}休假制度`),
    aliases: [pick(`${stem} leave rules`, `${stem}请假规定`)],
    tags: [pick('staff', '员工'), pick('policy', '制度')],
    summary: pick('How employees request leave.', '员工如何申请假期。'),
    facts: [pick(`Staff ask their manager two weeks ahead.`, `员工需提前两周向主管申请。`)],
  })
  const ask = asking(language)
  const about = { [main.key]: 3, [person.key]: 1, [thing.key]: 1, [policy.key]: 1 }
  return {
    pages: [main, person, thing, incident, policy],
    queries: [
      ...nameQueries(main, random, { [policy.key]: 1, [person.key]: 1, [thing.key]: 1 }),
      ...nameQueries(thing, random, { [incident.key]: 1, [main.key]: 1 }),
      ask('question', pick(`Who started the firm ${company}?`, `${company}是谁创办的？`), {
        ...about,
        [person.key]: 3,
      }),
      ask('question', pick(`Where is ${company} based?`, `${company}的总部在什么地方`), about),
      ask('question', pick(`Which firm makes ${product}?`, `${product}是哪家企业做的？`), {
        [main.key]: 3,
        [thing.key]: 3,
        [incident.key]: 1,
      }),
      ask('question', pick(`why was ${product} down in ${broken}`, `${product}在${broken}年为什么停机`), {
        [incident.key]: 3,
        [thing.key]: 1,
      }),
      ask('topic', pick(`${company} holiday leave request`, `${company} 假期 申请`), {
        [policy.key]: 3,
        [main.key]: 1,
      }),
      ask('paraphrase', pick(`how do I ask for days off at ${stem}`, `在${stem}上班怎么请假`), {
        [policy.key]: 3,
        [main.key]: 1,
      }),
      ask('paraphrase', pick(`${otherEn} ${company}`, `${company} ${otherZh}`), {
        [thing.key]: 3,
        [main.key]: 2,
      }),
    ],
  }
}

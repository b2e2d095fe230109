/** Filler sentences: they share words with the queries and answer none. */
import type { Random } from '../../harness/random.ts'
import type { Language } from './entry.ts'

const ENGLISH = {
  subjects: `the report|a recent survey|the local council|one of the teams|the museum|an early study|the committee|
the annual review|most visitors|several engineers|the archive|a group of students|the regional office|the press|
many residents|the project|a second edition|the market|the service|the national library`,
  verbs: `describes|compares|mentions|measures|records|questions|supports|publishes|collects|explains|reviews|follows|
improves|extends|documents|studies|maintains|summarises|presents|replaces`,
  objects: `the growth of the city|the cost of energy|the largest company in the area|the history of the language|
the capital needed for a new plant|the music of the region|a network of rivers and roads|the currency used in trade|
the quality of the water|the design of public buildings|the speed of the system|the memory of earlier generations|
the number of people who travel|the price of food|the founding of schools|a search for new materials|
the science behind the product|the structure of the data|the law on working hours|the winter climate of the coast`,
  ends: `in some detail|every year|for the first time|with care|since the last century|in three volumes|at low cost|
after a long debate|on behalf of the government|across the country|before the season begins|without much success|
according to its authors|together with its partners|in the north and in the south|as part of a larger plan`,
}
const CHINESE = {
  subjects: `这份报告|最近的调查|当地议会|其中一个团队|博物馆|早期研究|委员会|年度评审|多数游客|几位工程师|档案馆|
一批学生|地区办事处|媒体|许多居民|该项目|第二版|市场|这项服务|国家图书馆`,
  verbs:
    '描述了|比较了|提到了|测量了|记录了|质疑|支持|发表了|收集了|解释了|回顾了|跟踪了|改进了|扩展了|研究了|维护着|总结了|介绍了',
  objects: `城市的发展|能源的成本|地区最大的公司|语言的历史|新工厂所需的资金|当地的音乐|河流与道路的网络|贸易使用的货币|
水的质量|公共建筑的设计|系统的速度|前几代人的记忆|出行的人数|食品的价格|学校的创办|新材料的探索|产品背后的科学|
数据的结构|工作时间的法律|海岸的冬季气候`,
  ends: `，内容十分详细|，每年一次|，这是第一次|，态度谨慎|，始于上个世纪|，共分三卷|，成本很低|，经过长时间讨论|
，由政府委托|，遍及全国|，在季节开始之前|，成效不大|，据作者所说|，与合作伙伴共同完成|，覆盖南方和北方|，是更大计划的一部分`,
}

const split = (text: string): string[] => text.replaceAll('\n', '').split('|')
const lists = (parts: Record<keyof typeof ENGLISH, string>) => ({
  subjects: split(parts.subjects),
  verbs: split(parts.verbs),
  objects: split(parts.objects),
  ends: split(parts.ends),
})
const PARTS = { en: lists(ENGLISH), zh: lists(CHINESE) }

export function fillerSentence(language: Language, random: Random): string {
  const { subjects, verbs, objects, ends } = PARTS[language]
  const [subject, verb, object, end] = [subjects, verbs, objects, ends].map((list) => random.pick(list)) as [
    string,
    string,
    string,
    string,
  ]
  if (language === 'zh') return `${subject}${verb}${object}${end}。`
  return `${subject.charAt(0).toUpperCase()}${subject.slice(1)} ${verb} ${object} ${end}.`
}

/** Mixes the facts' sentences with `count` filler sentences. */
export function prose(language: Language, facts: readonly string[], count: number, random: Random): string {
  const sentences = Array.from({ length: count }, () => fillerSentence(language, random))
  for (const fact of facts) sentences.splice(random.between(0, sentences.length + 1), 0, fact)
  const lines: string[] = []
  for (let from = 0; from < sentences.length; from += 5)
    lines.push(sentences.slice(from, from + 5).join(language === 'zh' ? '' : ' '))
  return lines.join('\n')
}

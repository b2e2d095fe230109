/** Pages and queries from public facts. */
import type { Random } from '../../harness/random.ts'
import { asking, nameQueries, toPage, toRows } from './drafts.ts'
import type { Entry, Language } from './entry.ts'
import { CONCEPTS } from './facts/concepts.ts'
import { COUNTRIES } from './facts/countries.ts'
import { ELEMENTS } from './facts/elements.ts'
import { INVENTIONS, RIVERS } from './facts/inventions.ts'

/** Topics: title and subject, each in English and Chinese; then words of a query. */
const COUNTRY_TOPICS = toRows(`
Economy|经济|exports, industry and trade|出口、工业与贸易|business exports|出口贸易情况
History|历史|kingdoms, wars and treaties|王朝、战争与条约|past kingdoms wars|王朝和战争
Tourism|旅游|beaches, old towns and festivals|海滩、古城与节庆|travel festivals beaches|古城和节庆游玩
Cuisine|饮食|dishes, spices and bread|菜肴、香料与面包|food dishes spices|香料和菜肴
`) as [string, string, string, string, string, string][]

export function* countryEntries(language: Language, random: Random): Generator<Entry> {
  const isZh = language === 'zh'
  const ask = asking(language)
  const rows = toRows(COUNTRIES)
  for (const row of rows) {
    const [en, zh, capitalEn, capitalZh, regionEn, regionZh, moneyEn, moneyZh, tongueEn, tongueZh, alias] =
      row as [string, string, string, string, string, string, string, string, string, string, string]
    const name = isZh ? zh : en
    const capital = isZh ? capitalZh : capitalEn
    const region = isZh ? regionZh : regionEn
    const money = isZh ? moneyZh : moneyEn
    const tongue = isZh ? tongueZh : tongueEn
    const main = toPage(language, random, {
      key: `country:${en}`,
      title: name,
      aliases: isZh ? [`${zh}概况`, en] : [alias],
      tags: isZh ? ['国家', region] : ['country', region],
      summary: isZh ? `${name}是位于${region}的国家。` : `${name} is a state in ${region}.`,
      facts: isZh
        ? [`首都为${capital}。`, `官方语言为${tongue}，流通货币为${money}。`]
        : [
            `Its seat of government is the capital ${capital}.`,
            `The official language is ${tongue}; the currency is the ${money}.`,
          ],
    })
    const city = toPage(language, random, {
      key: `capital:${en}`,
      title: capital,
      aliases: isZh ? [capitalEn] : [],
      tags: isZh ? ['城市', region] : ['city', region],
      summary: isZh ? `${capital}是${name}的首都。` : `${capital} is the capital of ${name}.`,
      facts: isZh ? [`${capital}是${name}的政治中心。`] : [`The parliament of ${name} meets in ${capital}.`],
    })
    const topics = COUNTRY_TOPICS.map(([topicEn, topicZh, aboutEn, aboutZh]) =>
      toPage(language, random, {
        key: `${topicEn}:${en}`,
        title: isZh ? `${name}${topicZh}` : `${topicEn} of ${name}`,
        tags: isZh ? [topicZh, region] : [topicEn.toLowerCase(), region],
        summary: isZh ? `关于${name}的${aboutZh}。` : `About ${aboutEn} in ${name}.`,
        facts: isZh ? [`在${capital}可以了解${aboutZh}。`] : [`In ${capital} one learns about ${aboutEn}.`],
      }),
    )
    const related = Object.fromEntries(topics.map(({ key }) => [key, 1]))
    const both = { [city.key]: 3, [main.key]: 2 }
    const peers = rows.filter((other) => other[4] === regionEn && other[8] === tongueEn)
    yield {
      pages: [main, city, ...topics],
      queries: [
        ...nameQueries(main, random, { ...related, [city.key]: 1 }),
        ...nameQueries(city, random, { [main.key]: 1 }),
        ask(
          'question',
          isZh ? `请问${name}的首都是哪座城市？` : `What is the capital city of ${name}?`,
          both,
        ),
        ask(
          'question',
          isZh ? `在${name}旅行应该带什么货币？` : `Which currency should I carry when I go to ${name}?`,
          {
            [main.key]: 3,
            [topics[2]!.key]: 1,
          },
        ),
        ask('question', isZh ? `${name}人说什么语言` : `what language do they speak in ${name}`, {
          [main.key]: 3,
        }),
        ask(
          'question',
          isZh ? `${capital}是哪个国家的首都？` : `Which country has ${capital} as its capital?`,
          {
            [main.key]: 3,
            [city.key]: 3,
          },
        ),
        // The pages of both languages have English names.
        ask(
          'alias',
          isZh ? `${capitalEn} ${zh}` : `capital of the ${alias}`,
          isZh ? both : { [main.key]: 3, [city.key]: 1 },
        ),
        ask(
          'topic',
          isZh ? `${region} ${tongue} 国家` : `${tongue} ${region} country`,
          Object.fromEntries(peers.map(([peer]) => [`${language}:country:${peer}`, 3])),
        ),
        ...COUNTRY_TOPICS.map(([, , , , wordsEn, wordsZh], index) =>
          ask('topic', isZh ? `${name}${wordsZh}` : `${name} ${wordsEn}`, {
            [topics[index]!.key]: 3,
            [main.key]: 1,
          }),
        ),
        ask('paraphrase', isZh ? `${name}的官方用语和流通的钱` : `official tongue and money of ${name}`, {
          [main.key]: 3,
        }),
      ],
    }
  }
}

export function* elementEntries(language: Language, random: Random): Generator<Entry> {
  const isZh = language === 'zh'
  const ask = asking(language)
  const elements = ELEMENTS.split(',').map((text) => text.trim().split(' ') as [string, string, string])
  for (const [index, [symbol, en, zh]] of elements.entries()) {
    const number = index + 1
    const page = toPage(language, random, {
      key: `element:${en}`,
      title: isZh ? `${zh}元素` : en,
      aliases: isZh ? [zh, en] : [`element ${symbol}`],
      tags: isZh ? ['化学', '元素'] : ['chemistry', 'element'],
      summary: isZh ? `${zh}是一种化学元素。` : `${en} is a chemical element.`,
      facts: isZh
        ? [`${zh}的原子序数为${number}，符号为${symbol}。`]
        : [`${en} has the atomic number ${number} and is written ${symbol}.`],
      filler: random.between(2, 8),
    })
    const grades = { [page.key]: 3 }
    yield {
      pages: [page],
      queries: [
        ...nameQueries(page, random),
        ask(
          'question',
          isZh ? `${zh}的化学符号是什么？` : `What is the chemical symbol for ${en.toLowerCase()}?`,
          grades,
        ),
        ask(
          'question',
          isZh ? `原子序数${number}是哪种元素` : `Which element has atomic number ${number}?`,
          grades,
        ),
      ],
    }
  }
}

export function* conceptEntries(language: Language, random: Random): Generator<Entry> {
  const isZh = language === 'zh'
  const ask = asking(language)
  for (const row of toRows(CONCEPTS)) {
    const [en] = row as [string]
    const [title, alias, tags, what] = (isZh ? row.slice(4, 8) : row.slice(0, 4)) as [
      string,
      string,
      string,
      string,
    ]
    const question = row[isZh ? 9 : 8]!
    const page = toPage(language, random, {
      key: `concept:${en}`,
      title,
      aliases: [alias],
      tags: tags.split('/'),
      summary: what,
      facts: [isZh ? `${title}又称${alias}。` : `${title} is also known as ${alias}.`],
    })
    const example = toPage(language, random, {
      key: `example:${en}`,
      title: isZh ? `${title}的例子` : `Examples of ${title.toLowerCase()}`,
      tags: tags.split('/'),
      summary: isZh ? `课堂上使用的练习。` : `Exercises used in class.`,
      facts: [isZh ? `练习与${title}有关。` : `The exercises are about ${title.toLowerCase()}.`],
    })
    const grades = { [page.key]: 3, [example.key]: 1 }
    yield {
      pages: [page, example],
      queries: [
        ...nameQueries(page, random, { [example.key]: 1 }),
        ask('paraphrase', question, { [page.key]: 3 }),
        ask(
          'question',
          isZh
            ? `你能给我解释一下什么叫${title}吗？`
            : `Can you explain to me what ${title.toLowerCase()} means?`,
          grades,
        ),
        ask('alias', isZh ? `什么是${alias}` : `what is ${alias}`, grades),
      ],
    }
  }
}

export function* inventionEntries(language: Language, random: Random): Generator<Entry> {
  const isZh = language === 'zh'
  const ask = asking(language)
  for (const [en, zh, personEn, personZh, year] of toRows(INVENTIONS) as [
    string,
    string,
    string,
    string,
    string,
  ][]) {
    const [thing, person] = isZh ? [zh, personZh] : [en, personEn]
    const page = toPage(language, random, {
      key: `invention:${en}`,
      title: thing,
      tags: isZh ? ['发明', '科学史'] : ['invention', 'history of science'],
      summary: isZh ? `${thing}改变了世界。` : `${thing} changed the world.`,
      facts: isZh
        ? [`${thing}由${person}于${year}年首创。`]
        : [`It goes back to ${person}, who presented it in ${year}.`],
    })
    const maker = toPage(language, random, {
      key: `person:${personEn}`,
      title: person,
      aliases: isZh ? [personEn] : [],
      tags: isZh ? ['人物', '科学史'] : ['people', 'history of science'],
      summary: isZh ? `${person}以${thing}闻名。` : `${person} is remembered for ${thing.toLowerCase()}.`,
      facts: isZh ? [`${year}年，${person}完成了${thing}。`] : [`In ${year} came ${thing.toLowerCase()}.`],
    })
    const grades = { [page.key]: 3, [maker.key]: 2 }
    yield {
      pages: [page, maker],
      queries: [
        ...nameQueries(page, random, { [maker.key]: 1 }),
        ...nameQueries(maker, random, { [page.key]: 1 }),
        ask('question', isZh ? `${thing}是谁发明的？` : `Who invented ${thing.toLowerCase()}?`, grades),
        ask(
          'question',
          isZh ? `${thing}出现在哪一年` : `In which year did ${thing.toLowerCase()} first appear?`,
          grades,
        ),
        ask('paraphrase', isZh ? `${person}的科学贡献` : `scientific achievements of ${person}`, {
          [maker.key]: 3,
          [page.key]: 2,
        }),
      ],
    }
  }
}

export function* riverEntries(language: Language, random: Random): Generator<Entry> {
  const isZh = language === 'zh'
  const ask = asking(language)
  for (const row of toRows(RIVERS) as [string, string, string, string, string, string, string][]) {
    const [en, zh, length, mouthEn, mouthZh, countryEn, countryZh] = row
    const [name, mouth, country] = isZh ? [zh, mouthZh, countryZh] : [en, mouthEn, countryEn]
    const page = toPage(language, random, {
      key: `river:${en}`,
      title: name,
      aliases: isZh ? [en] : [`${en} basin`],
      tags: isZh ? ['河流', country] : ['river', country],
      summary: isZh
        ? `${name}流经${country}，注入${mouth}。`
        : `A river through ${country} that ends in the ${mouth}.`,
      facts: isZh ? [`${name}全长${length}公里。`] : [`It is ${length} kilometres long.`],
    })
    const grades = { [page.key]: 3 }
    yield {
      pages: [page],
      queries: [
        ...nameQueries(page, random),
        ask('question', isZh ? `${name}有多长？` : `How many kilometres long is the ${name}?`, grades),
        ask(
          'question',
          isZh ? `${name}最后流入哪片海` : `Into which sea does the ${name} river flow?`,
          grades,
        ),
        ask('topic', isZh ? `${country} 河流 ${mouth}` : `${country} river ${mouth}`, grades),
      ],
    }
  }
}

"""What a chat program asks for itself passes untouched and leaves no trace; what looks alike and is the user's is kept."""

from __future__ import annotations

import json

import pytest

from holdfast.server.proxy.request import auxiliary_task

from .test_memory import raw, said, user

SAID = "I live in Rome and I'm allergic to peanuts."
CHAT = [user(SAID), said("Noted!")]
TALK = f"USER: {SAID}\nASSISTANT: I live in Oslo. Noted!"
TAGGED = f"<chat_history>\n{TALK}\n</chat_history>"


def system(text):
    return {"role": "system", "content": text}


AUXILIARY = {
    "headings title": (
        "title",
        [
            user(
                "### Task:\nGenerate a concise, 3-5 word title with an emoji summarizing the chat history.\n### Guidelines:\n"
                f'- Write in the language of the chat.\n### Output:\nJSON format: {{ "title": "…" }}\n### Chat History:\n{TAGGED}'
            )
        ],
    ),
    "headings tags": (
        "tags",
        [user(f"### Task:\nGenerate 1-3 broad tags for the main themes of the chat history.\n### Output:\nJSON format: {{ \"tags\": [] }}\n### Chat History:\n{TAGGED}")],
    ),
    "headings follow-ups": (
        "follow-ups",
        [user(f"### Task:\nSuggest 3-5 relevant follow-up questions that the user might ask next, based on the chat history.\n### Output:\nJSON format\n{TAGGED}")],
    ),
    "headings queries": (
        "query",
        [user(f"### Task:\nAnalyze the chat history to determine the necessity of generating search queries.\n### Guidelines:\n- Respond **EXCLUSIVELY** with a JSON object.\n### Chat History:\n{TAGGED}")],
    ),
    "headings image": (
        "image-prompt",
        [user(f"### Task:\nGenerate a detailed prompt for an image generation task based on the conversation.\n### Output:\nStrictly return in JSON format.\n### Chat History:\n{TAGGED}")],
    ),
    "headings autocomplete": (
        "autocomplete",
        [user(f"### Task:\nYou are an autocompletion system. Continue the text in <text> based on the completion type.\n### Output:\nOnly the completion, in JSON format.\n<text>\n{SAID}\n</text>\n{TAGGED}")],
    ),
    "emoji": (
        "emoji",
        [user(f"Your task is to reflect the speaker's likely facial expression through a fitting emoji. Interpret emotions from the message and reply with only one emoji.\n\nMessage: \"\"\"{SAID}\"\"\" (the user's message)")],
    ),
    "title behind the chat": (
        "title",
        [*CHAT, user("Please generate a four to five word title summarizing our conversation without any lead-in, punctuation, quotation marks, or additional text.")],
    ),
    "title behind the chat by the system": (
        "title",
        [*CHAT, system("Write a short title for this conversation. Answer only with the title.")],
    ),
    "editor title behind the chat": (
        "title",
        [*CHAT, user("Generate a concise 3-7 word title for this conversation, omitting punctuation. Go straight to the title, without any preamble or prefix.")],
    ),
    "editor summary behind the chat": (
        "summary",
        [*CHAT, user("Generate a detailed summary of this conversation for future context. Your task is to keep decisions and open points. Do not answer the questions in it.")],
    ),
    "compaction": (
        "summary",
        [*CHAT, user("Your task is to create a detailed summary of the conversation so far, so that the work can go on without losing context. Respond with text only, wrapped in <summary> tags.")],
    ),
    "memory of the history": (
        "summary",
        [*CHAT, system("Summarize the discussion briefly in 200 words or less to use as a prompt for future context.")],
    ),
    "story so far": (
        "summary",
        [*CHAT, system("Ignore previous instructions. Summarize the most important facts and events in the story so far. Limit the summary to 200 words or less. Your response should include nothing but the summary.")],
    ),
    "system title": (
        "title",
        [system("You generate a short title based on the first message a user begins a conversation with. Do not use quotes or colons."), user(SAID)],
    ),
    "system title with messages": (
        "title",
        [system("Summarize the user's conversation into a title within 10 words, in the language of the user. Do not use punctuation."), user(json.dumps([{"role": "user", "content": SAID}]))],
    ),
    "system title Chinese": (
        "title",
        [system("你需要将用户的会话总结为 10 个字以内的标题，不要使用标点符号和其他特殊符号。"), user(f"user: {SAID}\nassistant: 好的\n请总结上述对话为10个字以内的标题")],
    ),
    "title behind the chat Chinese": (
        "title",
        [*CHAT, user("使用四到五个字直接返回这段对话的简要主题，不要解释、不要标点、不要语气词，如果没有主题，请直接返回“闲聊”")],
    ),
    "summary Chinese": ("summary", [*CHAT, system("简要总结一下对话内容，用作后续的上下文提示 prompt，控制在 200 字以内，只返回总结")]),
    "name of the chat": (
        "title",
        [user(f"Based on the chat history, give this conversation a name. Keep it short - 10 characters max, no quotes.\n```\n{TALK}\n```\nThe name is:")],
    ),
    "new topic": (
        "title",
        [system("Analyze if this message indicates a new conversation topic. If it does, extract a 2-3 word title. Respond in JSON format with isNewTopic and title only."), user(SAID)],
    ),
    "title of few words": (
        "title",
        [user(f"Provide a concise, 5-word-or-less title for the conversation, using title case. Only return the title itself.\n\n<conversation>\n{TALK}\n</conversation>")],
    ),
    "standalone question": (
        "query",
        [user(f"Given the following conversation and a follow up question, rephrase the follow up question to be a standalone question.\n\nChat History:\nHuman: {SAID}\nAssistant: Nice!\nFollow Up Input: and the weather?\nStandalone question:")],
    ),
    "search query by the system": (
        "query",
        [system("Rewrite the user's message into search queries for a web search engine. Respond with a JSON array only, without any explanation."), user(SAID)],
    ),
    "progressive summary": (
        "summary",
        [user(f"Progressively summarize the lines of conversation provided, adding onto the previous summary returning a new summary.\n\nCurrent summary:\nNone.\n\nNew lines of conversation:\nHuman: {SAID}\nAI: Great!\n\nNew summary:")],
    ),
    "memory extraction by the system": (
        "memory",
        [system("You are a Personal Information Organizer. Extract facts and preferences from the conversation. Return the facts in JSON format."), user(f"Input:\nuser: {SAID}\nassistant: Noted!")],
    ),
    "memory extraction in tags": (
        "memory",
        [user(f"Extract new facts about the user from the conversation below. Return JSON only.\n\n<conversation>\n{TALK}\n</conversation>")],
    ),
    "moderation": (
        "moderation",
        [user(f"Task: Check if there is unsafe content in the user's messages of the conversation below, according to our safety policy.\n\n<BEGIN CONVERSATION>\nUser: {SAID}\n<END CONVERSATION>\n\nAnswer 'safe' or 'unsafe', and nothing else.")],
    ),
    "moderation by the system": (
        "moderation",
        [system("Classify whether the user's message violates the content policy. Reply in JSON only."), user(SAID)],
    ),
    "expression": (
        "emoji",
        [*CHAT, system("Ignore previous instructions. Classify the emotion of the last message. Output just one word, e.g. \"joy\" or \"anger\".")],
    ),
    "image from the chat": (
        "image-prompt",
        [*CHAT, system("Ignore previous instructions. Your next response must be a comma-delimited list describing the scene of the last message, for an image prompt. Do not include anything else.")],
    ),
    "likely questions": (
        "follow-ups",
        [user(f"Please predict the three most likely questions that the user would ask after this conversation. Output only a JSON array.\nHuman: {SAID}\nAI: Noted!")],
    ),
    "suggested replies": (
        "follow-ups",
        [*CHAT, system("Based on the conversation above, suggest three short suggested replies for the user. Return only a JSON array of strings.")],
    ),
    "name of the chat, fenced": (
        "title",
        [user("Based on the chat history, give this conversation a name.\nKeep it short - 10 characters max, no quotes.\nUse English.\nJust provide the name, nothing else.\n\n"
              f"Here's the conversation:\n\n```\n{SAID}\n\n---------\n\nNoted!\n```\n\nName this conversation in 10 characters or less.\nUse English.\nOnly give the name, nothing else.\n\nThe name is:")],
    ),
    "name of the chat, without the last line": (
        "title",
        [user(f"Based on the chat history, give this conversation a name.\nKeep it short - 10 characters max, no quotes.\nUse Chinese.\nJust provide the name, nothing else.\n\nHere's the conversation:\n\n```\n{SAID}\n```")],
    ),
    "name of the chat, to go on from": (
        "title",
        [user(f"Name the following conversation in 10 characters or less. Use German.\n\n```\n{SAID}\n```\n\nThe name is:")],
    ),
    "quoted message": ("title", [user(f'Summarize in a 10-word Title. Give the title only. "{SAID}"')]),
    "quoted message of five words": ("title", [user(f'Summarize in a 5-word Title. Give the title only. Here is the message: "{SAID}"')]),
    "quoted message behind the chat": ("title", [*CHAT, user(f'Summarize in a 6-word Title. Give the title only. "{SAID}"')]),
    "label with examples": (
        "title",
        [system("You are a summarization AI. Your task is to summarize user requests into a single short sentence of four words or less. Do not try to answer the query, just summarize the user's query. Always start your answer with an emoji relevant to the summary."),
         user("Who is the president of Gabon?"), said("🇬🇦 President of Gabon"), user("Who is Julien Chaumond?"), said("🧑 Julien Chaumond"), user(SAID)],
    ),
    "label with examples, older": (
        "title",
        [system("You are a summarization AI. You'll never answer a user's question directly, but instead summarize the user's request into a single short sentence of four words or less. Always start your answer with an emoji relevant to the summary."),
         user("Who is the president of Gabon?"), said("🇬🇦 President of Gabon"), user(SAID)],
    ),
    "label without examples": (
        "title",
        [system("Summarize the user's request into a single short sentence of four words or less. Do not try to answer it, only summarize the user's query."), user(SAID)],
    ),
    "titling assistant with examples": (
        "title",
        [system("You are a chat thread titling assistant.\nGoal: Produce a very short, descriptive title (2–4 words) that names the topic of the user's first message.\nRules:\n- Output ONLY the title text. No prefixes, labels, quotes, emojis, hashtags, or trailing punctuation."),
         user("Who is the president of Gabon?"), said("President of Gabon"), user(SAID)],
    ),
    "title of truncated lines": (
        "title",
        [system("You are an AI conversation titles assistant who specializes in creating expressive yet few-words chat titles."),
         user(f"Analyze the given short conversation (every line is truncated) and extract a concise chat title that summarizes the conversation in as little as a couple of words.\nOnly respond with the lowercase short title and nothing else.\n\n```\n- user: {SAID}\n- assistant: Noted!\n```")],
    ),
    "fill in the middle": ("autocomplete", [user(f"<|fim_prefix|># {SAID}\ndef home():<|fim_suffix|>\n<|fim_middle|>")]),
    "named by metadata": ("title", [user(SAID)], {"metadata": {"task": "title_generation"}}),
    "named tags by metadata": ("tags", [user(SAID)], {"metadata": {"task": "tags_generation"}}),
    "declared by metadata": ("declared", [user(SAID)], {"metadata": {"auxiliary": True}}),
    "title German": (
        "title",
        [*CHAT, user("Erstelle einen kurzen Titel für diese Unterhaltung mit 3 bis 5 Wörtern. Antworte nur mit dem Titel, ohne Anführungszeichen.")],
    ),
    "title with a schema": (
        "title",
        [system("Generate a short title for the conversation."), user(f"user: {SAID}\nassistant: ok")],
        {"response_format": {"type": "json_schema", "json_schema": {"name": "title", "schema": {}}}, "max_tokens": 30},
    ),
}  # fmt: skip

ORDINARY = {
    "novel title": [user("Give me a title for my novel about a lighthouse keeper.")],
    "five titles": [user("Generate 5 titles for my blog post about peanuts, no more than six words each.")],
    "title only": [user("I need a title for my talk. Answer only with the title, no quotes.")],
    "summary of a book": [user("Summarize Moby Dick in 200 words or less.")],
    "summary of the chat": [*CHAT, user("Can you summarize our conversation so far?")],
    "summary in points": [*CHAT, user("Please summarize this conversation in three bullet points.")],
    "summary of words": [*CHAT, user("Sum up our discussion in 50 words, please.")],
    "title of the chat": [*CHAT, user("What would be a good title for this conversation?")],
    "pasted chat": [user(f"Can you summarise this chat?\n{TALK}")],
    "pasted chat title": [user(f"My friends wrote this, what title would you give it?\n\nTom: {SAID}\nAnn: lol")],
    "tags": [user("Which tags should I use for my photo of Rome?")],
    "hashtags": [user("Give me hashtags for my post about my new cat, only three please.")],
    "follow up": [user("I had a job interview. What follow-up questions should I ask?")],
    "follow-up mail": [user("Write a follow-up email to my landlord.")],
    "search query": [user("What search query finds cheap flights from Porto? I live in Porto.")],
    "emoji": [user("Which emoji fits my mood? I'm happy today.")],
    "only an emoji": [user("Reply with one emoji only: how was my joke?")],
    "image prompt": [user("Write me an image prompt for a castle at night, as a comma-separated list.")],
    "json": [user("Answer in JSON only: what is the capital of Portugal?")],
    "remember": [user("Remember these facts about me: I live in Rome and I'm vegan.")],
    "extract": [user("Extract the names from this list and return JSON only: Ann, Bob, Cy.")],
    "complete": [user("Complete the sentence: the sky is")],
    "continue the story": [*CHAT, user("Continue the story, but no longer than 100 words.")],
    "policy": [user("Is it harmful to eat raw potatoes? Answer yes or no.")],
    "moderate": [user("I moderate a forum. What's a good content policy?")],
    "classify": [user("Classify this review as positive or negative: the soup was cold.")],
    "headings": [user("### My plan\nI live in Porto.\n### Question\nWhat shall I cook?")],
    "task": [user("My task is to write a conversation for my Spanish class. Only use simple words.")],
    "story title": [system("You are a writing assistant who suggests titles and tags."), user(SAID)],
    "bot with rules": [system("You are a helpful bot. Keep the conversation polite. Do not use markdown. Answer in at most 50 words."), user(SAID)],
    "bot that summarizes": [system("You are a coach. At the end of a session you may summarize the conversation."), user(SAID)],
    "json bot": [system("Answer every question of the user in JSON format only."), user(SAID)],
    "rephrase": [user("Rephrase my message so that it sounds polite: send me the keys.")],
    "chat about titles": [user("In our last chat you gave me a title. I like it, thanks!"), said("Great!"), user("I live in Porto.")],
    "Chinese title": [user("给我的小说起一个标题")],
    "Chinese summary": [user("请总结一下《红楼梦》，不要超过两百字")],
    "German title": [user("Ich brauche einen Titel für meinen Roman, nur den Titel bitte.")],
    "short answer": [user("What's the topic of the user's guide of my oven? In 5 words.")],
    "name of the chat": [*CHAT, user("Give this conversation a name.")],
    "short name of the chat": [*CHAT, user("Give this conversation a name. Keep it short, 10 characters max.")],
    "name this chat": [*CHAT, user("Can you name this conversation in three words?")],
    "ten words": [user(f"Summarize in a 10-word title what I told you: {SAID}")],
    "ten words, the title only": [user(f"Summarize this in a 10-word title. Give the title only. {SAID}")],
    "unfinished": [user("Help me fill in this form.\nMy street is: Rua Nova\nThe name is:")],
    "bot that summarizes texts": [system("You are a summarization AI. Summarize the texts that the user sends in 100 words or less, and answer questions about them."), user("Summarize: Rome is old."), said("Rome is old."), user(SAID)],
    "bot that never answers for others": [system("You are a coach. Summarize the user's question first, then answer it. Never answer for the user's doctor."), user(SAID)],
    "short bot": [system("You are a concise bot. Answer the user's questions in ten words or less. Do not answer legal questions."), user(SAID), said("Noted!"), user("And Oslo?")],
    "named on": [user(AUXILIARY["name of the chat"][1][0]["content"])],
}  # fmt: skip


def task(messages, fields=None, **headers):
    return auxiliary_task({"messages": messages, **(fields or {})}, headers)


@pytest.mark.parametrize("name", AUXILIARY)
def test_what_a_chat_program_asks_for_itself_is_known(name):
    kind, messages, *fields = AUXILIARY[name]

    assert task(messages, *fields) == kind


@pytest.mark.parametrize("name", ORDINARY)
def test_what_a_user_asks_is_the_users(name):
    headers = {"x-memory": "on"} if name == "named on" else {}

    assert task(ORDINARY[name], **headers) == ""


def test_there_are_many_of_both():
    assert len(AUXILIARY) >= 25
    assert len(ORDINARY) >= 25


@pytest.mark.parametrize("name", AUXILIARY)
def test_it_passes_untouched_and_leaves_no_trace(world, name):
    """Nothing stored, nothing learned, nothing added, and the answer says so."""
    world.memory.user("ana").remember("Ana is allergic to cashews.")
    kind, messages, *fields = AUXILIARY[name]
    answer = raw(world.client(), messages, extra_body=fields[0] if fields else {})

    assert answer.headers["x-memory"] == answer.headers["x-holdfast-memory"] == f"off; reason=auxiliary; task={kind}"
    assert world.model.asked[-1].body["messages"] == messages
    assert world.stored() == []
    assert len(world.memory.user("ana").facts()) == 1


@pytest.mark.parametrize("name", ["novel title", "summary of the chat", "json", "remember", "bot with rules"])
def test_a_chat_that_looks_alike_is_remembered(world, name):
    answer = raw(world.client(), ORDINARY[name])

    assert answer.headers["x-memory"].startswith("on")
    assert world.stored()[-2] == ("user", ORDINARY[name][-1]["content"])


@pytest.mark.parametrize("header", ["X-OpenWebUI-Task", "X-Holdfast-Task", "X-Memory-Task"])
def test_a_header_may_name_the_task(world, header):
    answer = raw(world.client(**{header: "title_generation"}))

    assert answer.headers["x-memory"] == "off; reason=auxiliary; task=title"
    assert world.stored() == []


def test_who_knows_better_says_so(world):
    _, messages = AUXILIARY["name of the chat"]

    assert raw(world.client(X_Memory="on"), messages).headers["x-memory"].startswith("on")
    assert len(world.stored()) == 2

//! A deliberation: independent reviews side by side, rankings without names, the chairman, and the decision.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::changes;
use crate::decision::{Evidence, Reviewed, decide, quorum, weights};
use crate::digest::sha256;
use crate::families::{self, Assurance, Seat};
use crate::fence::Fence;
use crate::order::Sequence;
use crate::panel::{BYTES_PER_TOKEN, Inquiry, Panel, Session, chosen, estimated};
use crate::prompt;
use crate::request::{Budget, Effort, MAX_SEED, Members, Operation, Request, Wrong};
use crate::result::{
    AGGREGATOR, Agreed, Cost, PROTOCOL, PROTOCOL_VERSION, PeerRanking, Ranked, Response, Stage, Verification, Version,
    Vote, merged,
};
use crate::review::{self, Chairman, Scores, Verdict};
use crate::snapshot::{self, Expansion, File, Tree};
use crate::transcript::{REQUEST, Transcript, file_of, rendered};

/// Shares of the time that is left: of the first stage, and of the second.
const SHARES: (f64, f64) = (0.6, 0.6);
/// Bytes of instructions and schema of a stage after the first, about.
const LATER_INSTRUCTION_BYTES: usize = 2000;
/// What the fence adds to a review that is shown, at most.
const MAX_FENCE_BYTES: usize = 200;
/// Models that are asked for the verdict, one after the other, until one gives it.
const MAX_CHAIRMEN: usize = 2;

/// When a deliberation was, and what its transcript is called.
#[derive(Debug, Clone)]
pub struct Occasion {
    /// Random.
    pub verification_id: String,
    /// By RFC 3339.
    pub timestamp: String,
}

/// Work that is ready to be reviewed.
#[derive(Debug)]
pub struct Case {
    request: Request,
    commit: String,
    base: Option<String>,
    work: String,
    expansion: Expansion,
    files: Vec<File>,
    models: Vec<String>,
    seats: Vec<Seat>,
    chairman: Option<String>,
    fence: Fence,
    seed: u64,
    hash: String,
}

/// The models that were granted, and whose they are.
#[derive(Debug, Clone, Default)]
pub struct Granted {
    /// Their names, in order.
    pub names: Vec<String>,
    /// Their families, by their names, as far as they are known.
    pub families: BTreeMap<String, String>,
}

/// Tokens that are left for the stages after the first, of a panel of this many.
fn later(budget: &Budget, models: u32) -> u32 {
    let shown = estimated(prompt::SHOWN_REVIEW + MAX_FENCE_BYTES) * models + estimated(LATER_INSTRUCTION_BYTES);
    let rankings = if ranks(budget, models) { models * (shown + budget.ranking) } else { 0 };
    rankings + shown + budget.answer
}

/// Whether members rank each other: of two, each would know which is its own.
const fn ranks(budget: &Budget, models: u32) -> bool {
    budget.ranking > 0 && models > 2
}

fn count(models: usize) -> u32 {
    u32::try_from(models).unwrap_or(u32::MAX)
}

/// The seed of a request, which follows from what is asked unless the request has one, and the hash with it.
fn bound(members: &Members, asked: &Value) -> (u64, String) {
    let base = sha256(asked.to_string().as_bytes());
    let drawn = u64::from_str_radix(&base[..16], 16).unwrap_or_default() & MAX_SEED;
    let seed = members.seed.unwrap_or(drawn);
    (seed, sha256(format!("{base} {seed}").as_bytes()))
}

impl Case {
    /// Reads what a request names from a commit (and compares it with `base`, if the request has one) for a panel of models
    /// that were granted. `secret` is random.
    ///
    /// # Errors
    /// An argument that is not allowed, a panel that does not give the assurance that is asked for, nothing to review, or
    /// more than a review has room for.
    pub fn prepare<T: Tree>(
        request: Request,
        (commit, tree): (String, &T),
        base: Option<(String, &T)>,
        granted: &Granted,
        secret: &[u8],
    ) -> Result<Self, Wrong> {
        let budget = request.budget();
        let (models, seats, chairman) = seated(&request, granted)?;
        let panel = count(models.len());
        let probe = Fence::new(secret, &[]);
        let instructions =
            prompt::review_instructions(&request, &probe).len() + review::review_schema().to_string().len();
        let tokens = budget
            .tokens
            .saturating_sub(later(&budget, panel))
            .saturating_sub(panel * (budget.answer + estimated(instructions)));
        let mut room = (tokens / panel) as usize * BYTES_PER_TOKEN;
        let mut takes = |bytes: usize| {
            let fits = bytes <= room;
            room -= if fits { bytes } else { 0 };
            fits
        };
        let bare = prompt::work(&Request { diff: None, requirements: None, ..request.clone() }, &probe, &[]).len();
        if !takes(bare) {
            let problem = format!(
                "{panel} models have no room for work within {} tokens; ask fewer, or with more effort",
                budget.tokens
            );
            return Err(Wrong::new("models", problem));
        }
        for (field, text) in [("requirements", &request.requirements), ("git_diff", &request.diff)] {
            let Some(text) = text else { continue };
            let shown = probe.enclose(field, None, text).len();
            if !takes(shown) {
                let problem = format!(
                    "it takes {shown} bytes as it is shown, and {panel} models have no room for that within {} tokens; \
                     review it in parts, with fewer models, or with more effort",
                    budget.tokens
                );
                return Err(Wrong::new(field, problem));
            }
        }
        let fits = |file: &File| {
            // As it is shown it is no shorter.
            let shown = |file: &File| probe.enclose(prompt::shown_as(&request), Some(&file.path), &file.text).len();
            file.text.len() <= room && {
                let bytes = shown(file);
                let fits = bytes <= room;
                room -= if fits { bytes } else { 0 };
                fits
            }
        };
        let (expansion, files) = match &base {
            Some((_, base)) => changes::between((*base, tree), request.paths_field, &request.paths, fits)?,
            None => {
                let mut expansion = snapshot::expand(tree, request.paths_field, &request.paths)?;
                let files = snapshot::read(tree, &mut expansion, fits);
                (expansion, files)
            }
        };
        if files.is_empty() && request.diff.is_none() {
            let all = expansion.warnings.join("; ");
            let none = if base.is_some() { "nothing changed there" } else { "the folders have no text files" };
            let why = if all.is_empty() { none.to_owned() } else { all };
            return Err(Wrong::new(request.paths_field, format!("there is nothing to review: {why}")));
        }
        let mut texts: Vec<&str> = files.iter().flat_map(|file| [file.path.as_str(), file.text.as_str()]).collect();
        texts.extend(request.diff.as_deref());
        texts.extend(request.requirements.as_deref());
        let fence = Fence::new(secret, &texts);
        let contents: Vec<(&str, String)> =
            files.iter().map(|file| (file.path.as_str(), sha256(file.text.as_bytes()))).collect();
        let diff = request.diff.as_ref().map(|diff| sha256(diff.as_bytes()));
        let work = sha256(json!([contents, diff, request.requirements]).to_string().as_bytes());
        let base = base.map(|(base, _)| base);
        let (seed, hash) = bound(
            &request.members,
            &json!([
                PROTOCOL,
                prompt::RUBRIC,
                AGGREGATOR,
                request.operation,
                request.effort,
                commit,
                base,
                work,
                request.focus,
                request.threshold,
                request.assurance,
                request.author,
                models,
                chairman,
            ]),
        );
        Ok(Self { request, commit, base, work, expansion, files, models, seats, chairman, fence, seed, hash })
    }

    /// The files that are reviewed, or how they differ.
    pub fn files(&self) -> &[File] {
        &self.files
    }

    /// Reviews that there have to be.
    const fn needed(&self) -> usize {
        match self.request.assurance {
            Assurance::High => self.models.len(),
            _ => quorum(self.models.len()),
        }
    }

    /// The seats of those that reviewed.
    fn came(&self, reviews: &[Reviewed]) -> Vec<Seat> {
        let reviewed = |seat: &&Seat| reviews.iter().any(|one| one.model == seat.model);
        self.seats.iter().filter(reviewed).cloned().collect()
    }

    /// Reviews, ranks and decides. What is asked and answered goes into `transcript` as it comes.
    pub fn verify(&self, panel: &impl Panel, occasion: Occasion, transcript: &mut Transcript<'_>) -> Verification {
        transcript.put(REQUEST, rendered(&self.recorded_request()));
        let Self { request, fence, models, .. } = self;
        let budget = request.budget();
        let size = count(models.len());
        let mut session = Session::new(panel, budget);
        let mut orders = Sequence::new(self.seed);

        session.progress(0.1, &format!("{size} models review {} files", self.files.len()));
        let instructions = prompt::review_instructions(request, fence);
        let (text, schema) = (prompt::work(request, fence, &self.files), review::review_schema().to_string());
        let ask = |model: &String| Inquiry {
            model: model.clone(),
            instructions: instructions.clone(),
            text: text.clone(),
            schema: schema.clone(),
            max_tokens: budget.answer,
        };
        let reviewed = session.stage(
            Stage::Reviews,
            models.iter().map(ask).collect(),
            (SHARES.0, later(&budget, size)),
            |_, text| review::review(text, &self.expansion.files),
        );
        let reviews: Vec<Reviewed> =
            reviewed.into_iter().map(|(index, review)| Reviewed { model: models[index].clone(), review }).collect();
        record(transcript, &session, Stage::Reviews);
        let authors: Vec<String> = reviews.iter().map(|one| one.model.clone()).collect();
        let texts: Vec<String> = reviews.iter().map(|one| prompt::shown_review(&one.review)).collect();

        let (worth, votes) = (families::votes(&self.came(&reviews)), request.assurance.votes());
        if worth < votes {
            let text = format!("those that reviewed are worth {worth:.2} independent votes, and {votes} are needed");
            session.incomplete.push(text);
        }
        // Without a quorum nothing comes of it, whatever else is asked.
        let has_quorum = reviews.len() >= self.needed();
        let (mut weights, mut chairs) = (weights(reviews.len(), &[]), None);
        if has_quorum {
            session.progress(0.6, "the models rank the reviews");
            weights = ranked(&mut session, fence, "review", "reviews", &authors, &texts, &budget, &mut orders);
            record(transcript, &session, Stage::Rankings);
            session.progress(0.8, "the chairman writes the verdict");
            let (instructions, schema) = (prompt::chairman_instructions(fence), review::chairman_schema().to_string());
            let order = orders.shuffled(texts.len());
            let text = prompt::lettered("review", fence, &texts, &order) + &prompt::shown_weights(&weights, &order);
            let inquiry = Inquiry {
                model: String::new(),
                instructions,
                text: text + "Say what the reviews come to, and answer with the JSON object.\n",
                schema,
                max_tokens: budget.answer,
            };
            chairs = chaired(&mut session, self.chairman.as_ref(), &authors, &inquiry, review::chairman);
        }
        [Stage::Rankings, Stage::Verdict].into_iter().for_each(|stage| record(transcript, &session, stage));
        self.result(session, &reviews, &weights, chairs, occasion, transcript)
    }

    fn result<P: Panel>(
        &self,
        mut session: Session<'_, P>,
        reviews: &[Reviewed],
        weights: &[f64],
        chairs: Option<(String, Chairman)>,
        occasion: Occasion,
        transcript: &Transcript<'_>,
    ) -> Verification {
        let Self { request, expansion, models, .. } = self;
        if expansion.truncated {
            session.incomplete.push("not everything was reviewed; see expansion_warnings".to_owned());
        }
        let decision = decide(&Evidence {
            panel: models.len(),
            needed: self.needed(),
            reviews,
            weights,
            chairman: chairs.as_ref().map(|(_, chairman)| chairman),
            threshold: request.threshold,
            incomplete: std::mem::take(&mut session.incomplete),
        });
        let scores = Scores::mean(reviews.iter().map(|one| &one.review.scores));
        let issues = reviews.iter().map(|one| (one.model.as_str(), &one.review.issues[..]));
        let best = weights.iter().enumerate().max_by(|one, other| one.1.total_cmp(other.1)).map(|(index, _)| index);
        let rationale = match (&chairs, best) {
            (Some((_, chairman)), _) if !chairman.rationale.is_empty() => chairman.rationale.clone(),
            (_, Some(best)) => reviews[best].review.rationale.clone(),
            _ => decision.reasons.join("; "),
        };
        let vote = |(Reviewed { model, review }, weight): (&Reviewed, &f64)| Vote {
            model: model.clone(),
            verdict: review.verdict,
            confidence: review.confidence,
            weight: *weight,
            length: prompt::shown_review(review).len(),
        };
        let session_cost = cost(&session, request.budget());
        Verification {
            verdict: decision.verdict,
            confidence: decision.confidence,
            exit_code: decision.verdict.exit_code(),
            reasons: decision.reasons,
            rubric_scores: scores,
            rubric_total: scores.map(|scores| scores.weighted()),
            blocking_issues: merged(issues, request.operation == Operation::Review),
            rationale,
            dissent: dissent(decision.verdict, reviews, chairs.as_ref()),
            timestamp: occasion.timestamp,
            version: version(models),
            verification_id: occasion.verification_id,
            protocol_version: PROTOCOL_VERSION.to_owned(),
            reproducibility_hash: self.hash.clone(),
            operation: request.operation,
            effort: request.effort,
            assurance: request.assurance,
            panel: self.seats.clone(),
            independent_votes: families::votes(&self.came(reviews)),
            snapshot_id: self.commit.clone(),
            base_id: self.base.clone(),
            original_response_hash: self.work.clone(),
            requested_paths: request.paths.clone(),
            expanded_paths: expansion.files.clone(),
            paths_truncated: expansion.truncated,
            expansion_warnings: expansion.warnings.clone(),
            seed: self.seed,
            chairman: chairs.map(|(model, _)| model),
            votes: reviews.iter().zip(weights).map(vote).collect(),
            rankings: session.rankings,
            left_out: session.left_out,
            responses: session.responses,
            transcript: transcript.digests(),
            transcript_path: transcript.path(),
            transcript_problem: transcript.problem(),
            invoking_agent: request.members.invoking_agent.clone(),
            skill_version: request.members.skill_version.clone(),
            cost: session_cost,
            signature: None,
        }
    }

    fn recorded_request(&self) -> Value {
        let Request { operation, snapshot_id, paths, diff, focus, requirements, threshold, effort, .. } = &self.request;
        let Request { assurance, author, members, .. } = &self.request;
        json!({
            "operation": operation,
            "snapshot_id": snapshot_id,
            "commit": self.commit,
            "base_commit": self.base,
            "original_response_hash": self.work,
            "paths": paths,
            "git_diff_sha256": diff.as_ref().map(|diff| sha256(diff.as_bytes())),
            "rubric_focus": focus,
            "requirements": requirements,
            "confidence_threshold": threshold,
            "effort": effort,
            "assurance": assurance,
            "author_family": author,
            "panel": self.seats,
            "models": self.models,
            "chairman": self.chairman,
            "seed": self.seed,
            "invoking_agent": members.invoking_agent,
            "skill_version": members.skill_version,
            "reproducibility_hash": self.hash,
        })
    }
}

/// The models of a panel with their families, and the one that is to write the verdict.
type Seated = (Vec<String>, Vec<Seat>, Option<String>);

/// Who is on the panel that a request asks for.
///
/// # Errors
/// A model that was not granted, too few, or a panel that does not give the assurance that is asked for.
fn seated(request: &Request, granted: &Granted) -> Result<Seated, Wrong> {
    let (author, assurance) = (request.author.as_deref(), request.assurance);
    let order = families::mixed(&granted.names, &granted.families, author, assurance);
    let (models, chairman) = chosen(&request.members, &granted.names, &order, request.budget().panel)?;
    let seats = |models: &[String]| families::seats(models, &granted.families, author);
    families::assured(&seats(&models), assurance)?;
    if let Some(seat) = chairman.iter().flat_map(|chairman| seats(std::slice::from_ref(chairman))).next()
        && assurance == Assurance::High
        && seat.is_authors
    {
        let problem = "it is of the family that wrote the work, which has no seat with assurance high";
        return Err(Wrong::new(format!("chairman = {:?}", seat.model), problem));
    }
    let seats = seats(&models);
    Ok((models, seats, chairman))
}

fn version(models: &[String]) -> Version {
    Version {
        rubric: prompt::RUBRIC.to_owned(),
        models: models.to_vec(),
        aggregator: AGGREGATOR.to_owned(),
        protocol: PROTOCOL.to_owned(),
    }
}

fn cost<P: Panel>(session: &Session<'_, P>, budget: Budget) -> Cost {
    Cost {
        time_ms: session.elapsed_ms(),
        time_limit_ms: budget.time_ms,
        tokens: session.tokens,
        token_limit: budget.tokens,
    }
}

/// Puts what models answered in a stage into the transcript.
fn record<P>(transcript: &mut Transcript<'_>, session: &Session<'_, P>, stage: Stage) {
    let of_it = session.responses.iter().filter(|one| one.stage == stage);
    let shown =
        |one: &Response| json!({ "model": one.model, "sha256": one.sha256, "tokens": one.tokens, "text": one.text });
    transcript.put(file_of(stage), rendered(&Value::from_iter(of_it.map(shown))));
}

/// What members see otherwise: those that vote for another verdict, and the chairman's own words about it.
fn dissent(verdict: Verdict, reviews: &[Reviewed], chairs: Option<&(String, Chairman)>) -> Option<String> {
    let others = reviews.iter().filter(|one| one.review.verdict != verdict);
    let mut all: Vec<String> = others
        .map(|Reviewed { model, review }| {
            format!("{model} ({}, {:.2}): {}", review.verdict.as_str(), review.confidence, review.rationale)
        })
        .collect();
    if let Some((model, chairman)) = chairs {
        if chairman.verdict != verdict {
            all.push(format!("the chairman {model} says {}", chairman.verdict.as_str()));
        }
        if !chairman.dissent.is_empty() {
            all.push(chairman.dissent.clone());
        }
    }
    (!all.is_empty()).then(|| all.join("; "))
}

/// Has each author rank what all said, in an order of its own, and gives how much each counts.
#[expect(clippy::too_many_arguments, reason = "reviews and answers are ranked alike")]
fn ranked<P: Panel>(
    session: &mut Session<'_, P>,
    fence: &Fence,
    what: &str,
    plural: &str,
    authors: &[String],
    texts: &[String],
    budget: &Budget,
    orders: &mut Sequence,
) -> Vec<f64> {
    if !ranks(budget, count(authors.len())) {
        return weights(authors.len(), &[]);
    }
    let (instructions, schema) = (prompt::ranking_instructions(plural, fence), review::ranking_schema().to_string());
    let shown: Vec<Vec<usize>> = authors.iter().map(|_| orders.shuffled(texts.len())).collect();
    let ask = |(model, order): (&String, &Vec<usize>)| Inquiry {
        model: model.clone(),
        instructions: instructions.clone(),
        text: prompt::lettered(what, fence, texts, order) + "Rank them, and answer with the JSON object.\n",
        schema: schema.clone(),
        max_tokens: budget.ranking,
    };
    let inquiries = authors.iter().zip(&shown).map(ask).collect();
    let verdict = texts.iter().map(|text| estimated(text.len() + MAX_FENCE_BYTES)).sum::<u32>()
        + estimated(LATER_INSTRUCTION_BYTES);
    let rankings = session.stage(Stage::Rankings, inquiries, (SHARES.1, verdict + budget.answer), |_, text| {
        review::ranking(text, texts.len())
    });
    // From the places in which each was shown them.
    let by_number = |(author, places): (usize, Vec<usize>)| {
        (author, places.into_iter().map(|place| shown[author][place]).collect())
    };
    let rankings: Vec<(usize, Vec<usize>)> = rankings.into_iter().map(by_number).collect();
    let names = |numbers: &[usize]| numbers.iter().map(|number| authors[*number].clone()).collect();
    session.rankings = rankings
        .iter()
        .map(|(author, ranked)| PeerRanking {
            model: authors[*author].clone(),
            shown: names(&shown[*author]),
            ranked: names(ranked),
        })
        .collect();
    weights(texts.len(), &rankings)
}

/// Has the chairman answer: the one that was named, else the first of the members that answered; if that fails, another.
fn chaired<P: Panel, T>(
    session: &mut Session<'_, P>,
    named: Option<&String>,
    members: &[String],
    inquiry: &Inquiry,
    read: impl Fn(&str) -> Result<T, String>,
) -> Option<(String, T)> {
    let others = members.iter().filter(|model| Some(*model) != named);
    let chairmen: Vec<&String> = named.into_iter().chain(others).take(MAX_CHAIRMEN).collect();
    for (index, model) in chairmen.iter().enumerate() {
        let share = if index + 1 == chairmen.len() { 1.0 } else { 0.7 };
        let asked = Inquiry { model: (*model).clone(), ..inquiry.clone() };
        let answers = session.stage(Stage::Verdict, vec![asked], (share, 0), |_, text| read(text));
        if let Some((_, answer)) = answers.into_iter().next() {
            return Some(((*model).clone(), answer));
        }
    }
    None
}

/// Asks all models a question, has them rank the answers, and the chairman make one of them.
///
/// # Errors
/// A model that was not granted, or too few; a question that is too long for the effort.
pub fn consensus(
    (question, effort, members): (String, Effort, Members),
    granted: &[String],
    secret: &[u8],
    panel: &impl Panel,
    occasion: Occasion,
    transcript: &mut Transcript<'_>,
) -> Result<Agreed, Wrong> {
    let budget = Budget::of(Operation::Consensus, effort);
    let (models, chairman) = chosen(&members, granted, granted, budget.panel)?;
    let size = count(models.len());
    let fence = Fence::new(secret, &[&question]);
    let asked = fence.enclose("question", None, &question);
    let (seed, hash) = bound(&members, &json!([PROTOCOL, Operation::Consensus, effort, question, models, chairman]));
    let (instructions, schema) = (prompt::answer_instructions(&fence), review::answer_schema().to_string());
    let needed = later(&budget, size)
        + size * (budget.answer + estimated(instructions.len() + asked.len()))
        + estimated(asked.len());
    if needed > budget.tokens {
        let problem = format!("{size} models have no room for it within {} tokens; ask fewer, or less", budget.tokens);
        return Err(Wrong::new("question", problem));
    }
    let request = json!({ "operation": Operation::Consensus, "question": question, "effort": effort, "models": models,
        "chairman": chairman, "seed": seed, "invoking_agent": members.invoking_agent,
        "skill_version": members.skill_version, "reproducibility_hash": hash });
    transcript.put(REQUEST, rendered(&request));
    let mut session = Session::new(panel, budget);
    let mut orders = Sequence::new(seed);

    session.progress(0.1, &format!("{size} models answer"));
    let ask = |model: &String| Inquiry {
        model: model.clone(),
        instructions: instructions.clone(),
        text: asked.clone(),
        schema: schema.clone(),
        max_tokens: budget.answer,
    };
    let reserve = later(&budget, size) + estimated(asked.len());
    let inquiries = models.iter().map(ask).collect();
    let answered = session.stage(Stage::Reviews, inquiries, (SHARES.0, reserve), |_, text| review::answer(text));
    record(transcript, &session, Stage::Reviews);
    let authors: Vec<String> = answered.iter().map(|(index, _)| models[*index].clone()).collect();
    let texts: Vec<String> =
        answered.iter().map(|(_, text)| crate::fence::bounded(text, prompt::SHOWN_REVIEW).to_owned()).collect();
    let (mut weights, mut merged) = (weights(texts.len(), &[]), None);
    if texts.len() >= quorum(models.len()) {
        session.progress(0.6, "the models rank the answers");
        weights = ranked(&mut session, &fence, "answer", "answers", &authors, &texts, &budget, &mut orders);
        record(transcript, &session, Stage::Rankings);
        session.progress(0.8, "the chairman writes the answer");
        let order = orders.shuffled(texts.len());
        let text =
            asked + &prompt::lettered("answer", &fence, &texts, &order) + &prompt::shown_weights(&weights, &order);
        let inquiry = Inquiry {
            model: String::new(),
            instructions: prompt::merge_instructions(&fence),
            text,
            schema,
            max_tokens: budget.answer,
        };
        merged = chaired(&mut session, chairman.as_ref(), &authors, &inquiry, review::answer);
    } else {
        let (came, needed) = (texts.len(), quorum(models.len()));
        session.incomplete.push(format!("no quorum: {came} of {size} models answered, and {needed} have to"));
    }
    let mut ranking: Vec<Ranked> =
        authors.into_iter().zip(&weights).map(|(model, weight)| Ranked { model, weight: *weight }).collect();
    ranking.sort_by(|one, other| other.weight.total_cmp(&one.weight));
    [Stage::Rankings, Stage::Verdict].into_iter().for_each(|stage| record(transcript, &session, stage));
    let cost = cost(&session, budget);
    Ok(Agreed {
        answer: merged.map(|(_, answer)| answer),
        reasons: session.incomplete,
        ranking,
        timestamp: occasion.timestamp,
        version: version(&models),
        verification_id: occasion.verification_id,
        protocol_version: PROTOCOL_VERSION.to_owned(),
        reproducibility_hash: hash,
        seed,
        left_out: session.left_out,
        responses: session.responses,
        transcript: transcript.digests(),
        transcript_path: transcript.path(),
        transcript_problem: transcript.problem(),
        invoking_agent: members.invoking_agent,
        skill_version: members.skill_version,
        cost,
        signature: None,
    })
}
